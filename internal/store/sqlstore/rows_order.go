package sqlstore

import (
	"time"

	"github.com/payonce/payonce"
)

// orderRow is an order with what only the store needs.
type orderRow struct {
	payonce.Order
	writer [16]byte // salt of the unit that wrote last
}

// due is when a worker must look at the order: at its end while it could still
// be paid. A closing order is finished by the end of its last payment.
func (o *orderRow) due() time.Time {
	if o.Status == payonce.OrderOpen || o.Status == payonce.OrderPartiallyPaid {
		return o.ExpiresAt
	}
	return time.Time{}
}

var orderRows = newRows("orders", []field[orderRow]{
	{Column{"id", ID, false}, true, func(o *orderRow) any { return o.ID }, func(o *orderRow) scanner { return textTo(&o.ID) }},
	{Column{"key_hash", Hash, false}, true, func(o *orderRow) any { h := KeyHash(o.Key); return h[:] }, nil},
	{Column{"merchant", Name, false}, true, func(o *orderRow) any { return o.Key.Merchant }, func(o *orderRow) scanner { return textTo(&o.Key.Merchant) }},
	{Column{"environment", ID, false}, true, func(o *orderRow) any { return string(o.Key.Environment) }, func(o *orderRow) scanner { return textTo(&o.Key.Environment) }},
	{Column{"order_no", Name, false}, true, func(o *orderRow) any { return o.Key.OrderNo }, func(o *orderRow) scanner { return textTo(&o.Key.OrderNo) }},
	{Column{"status", ID, false}, false, func(o *orderRow) any { return string(o.Status) }, func(o *orderRow) scanner { return textTo(&o.Status) }},
	{Column{"amount", Int, false}, false, func(o *orderRow) any { return int64(o.Amount) }, func(o *orderRow) scanner { return intTo(&o.Amount) }},
	{Column{"currency", ID, false}, true, func(o *orderRow) any { return string(o.Currency) }, func(o *orderRow) scanner { return textTo(&o.Currency) }},
	{Column{"subject", Human, false}, false, func(o *orderRow) any { return human(o.Subject) }, func(o *orderRow) scanner { return textTo(&o.Subject) }},
	{Column{"policy", ID, false}, true, func(o *orderRow) any { return string(o.Policy) }, func(o *orderRow) scanner { return textTo(&o.Policy) }},
	{Column{"amount_paid", Int, false}, false, func(o *orderRow) any { return int64(o.AmountPaid) }, func(o *orderRow) scanner { return intTo(&o.AmountPaid) }},
	{Column{"amount_refunded", Int, false}, false, func(o *orderRow) any { return int64(o.AmountRefunded) }, func(o *orderRow) scanner { return intTo(&o.AmountRefunded) }},
	{Column{"amount_surplus", Int, false}, false, func(o *orderRow) any { return int64(o.AmountSurplus) }, func(o *orderRow) scanner { return intTo(&o.AmountSurplus) }},
	{Column{"reserved", Int, false}, false, func(o *orderRow) any { return int64(o.Reserved) }, func(o *orderRow) scanner { return intTo(&o.Reserved) }},
	{Column{"expires_at", Int, false}, false, func(o *orderRow) any { return micros(o.ExpiresAt) }, func(o *orderRow) scanner { return timeTo(&o.ExpiresAt) }},
	{Column{"due_at", Int, true}, false, func(o *orderRow) any { return nullMicros(o.due()) }, nil},
	{Column{"metadata", JSON, false}, false, func(o *orderRow) any { return human(o.Metadata) }, func(o *orderRow) scanner { return textTo(&o.Metadata) }},
	{Column{"last_sequence", Int, false}, false, func(o *orderRow) any { return int64(o.LastSequence) }, func(o *orderRow) scanner { return intTo(&o.LastSequence) }},
	{Column{"version", Int, false}, false, func(o *orderRow) any { return o.Version }, func(o *orderRow) scanner { return intTo(&o.Version) }},
	{Column{"audit_length", Int, false}, false, func(o *orderRow) any { return o.AuditLength }, func(o *orderRow) scanner { return intTo(&o.AuditLength) }},
	{Column{"audit_head", Hash, false}, false, func(o *orderRow) any { return append([]byte(nil), o.AuditHead[:]...) }, func(o *orderRow) scanner { return fixedTo(o.AuditHead[:]) }},
	{Column{"writer", Salt, false}, false, func(o *orderRow) any { return append([]byte(nil), o.writer[:]...) }, func(o *orderRow) scanner { return fixedTo(o.writer[:]) }},
	{Column{"created_at", Int, false}, true, func(o *orderRow) any { return micros(o.CreatedAt) }, func(o *orderRow) scanner { return timeTo(&o.CreatedAt) }},
	{Column{"updated_at", Int, false}, false, func(o *orderRow) any { return micros(o.UpdatedAt) }, func(o *orderRow) scanner { return timeTo(&o.UpdatedAt) }},
})
