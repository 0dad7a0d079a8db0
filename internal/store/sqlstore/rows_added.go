package sqlstore

import (
	"github.com/payonce/payonce/internal/store"
)

// Rows that are only ever added: all columns are fixed.
var keyRows = newRows("idempotency_keys", []field[store.KeyRecord]{
	{Column{"id", Hash, false}, true, func(k *store.KeyRecord) any { return append([]byte(nil), k.ID[:]...) }, func(k *store.KeyRecord) scanner { return fixedTo(k.ID[:]) }},
	{Column{"merchant", Name, false}, true, func(k *store.KeyRecord) any { return k.Merchant }, func(k *store.KeyRecord) scanner { return textTo(&k.Merchant) }},
	{Column{"environment", ID, false}, true, func(k *store.KeyRecord) any { return string(k.Environment) }, func(k *store.KeyRecord) scanner { return textTo(&k.Environment) }},
	{Column{"kind", ID, false}, true, func(k *store.KeyRecord) any { return k.Kind }, func(k *store.KeyRecord) scanner { return textTo(&k.Kind) }},
	{Column{"order_id", ID, false}, true, func(k *store.KeyRecord) any { return k.OrderID }, func(k *store.KeyRecord) scanner { return textTo(&k.OrderID) }},
	{Column{"payment_id", ID, false}, true, func(k *store.KeyRecord) any { return k.PaymentID }, func(k *store.KeyRecord) scanner { return textTo(&k.PaymentID) }},
	{Column{"fp_version", Int, false}, true, func(k *store.KeyRecord) any { return int64(k.FPVersion) }, func(k *store.KeyRecord) scanner { return intTo(&k.FPVersion) }},
	{Column{"fp_secret", Name, false}, true, func(k *store.KeyRecord) any { return k.FPSecret }, func(k *store.KeyRecord) scanner { return textTo(&k.FPSecret) }},
	{Column{"fp", Hash, false}, true, func(k *store.KeyRecord) any { return append([]byte(nil), k.FP[:]...) }, func(k *store.KeyRecord) scanner { return fixedTo(k.FP[:]) }},
	{Column{"converged", Bool, false}, true, func(k *store.KeyRecord) any { return flag(k.Converged) }, func(k *store.KeyRecord) scanner { return boolTo(&k.Converged) }},
	{Column{"answer_until", Int, false}, true, func(k *store.KeyRecord) any { return micros(k.AnswerUntil) }, func(k *store.KeyRecord) scanner { return timeTo(&k.AnswerUntil) }},
	{Column{"created_at", Int, false}, true, func(k *store.KeyRecord) any { return micros(k.CreatedAt) }, func(k *store.KeyRecord) scanner { return timeTo(&k.CreatedAt) }},
})

var evidenceRows = newRows("evidence", []field[store.Evidence]{
	{Column{"payment_id", ID, false}, true, func(e *store.Evidence) any { return e.PaymentID }, func(e *store.Evidence) scanner { return textTo(&e.PaymentID) }},
	{Column{"id", ID, false}, true, func(e *store.Evidence) any { return e.ID }, func(e *store.Evidence) scanner { return textTo(&e.ID) }},
	{Column{"order_id", ID, false}, true, func(e *store.Evidence) any { return e.OrderID }, func(e *store.Evidence) scanner { return textTo(&e.OrderID) }},
	{Column{"kind", ID, false}, true, func(e *store.Evidence) any { return e.Kind }, func(e *store.Evidence) scanner { return textTo(&e.Kind) }},
	{Column{"source", ID, false}, true, func(e *store.Evidence) any { return e.Source }, func(e *store.Evidence) scanner { return textTo(&e.Source) }},
	{Column{"number", Name, false}, true, func(e *store.Evidence) any { return e.Number }, func(e *store.Evidence) scanner { return textTo(&e.Number) }},
	{Column{"permit", Int, false}, true, func(e *store.Evidence) any { return int64(e.Permit) }, func(e *store.Evidence) scanner { return intTo(&e.Permit) }},
	{Column{"fence", Int, false}, true, func(e *store.Evidence) any { return e.Fence }, func(e *store.Evidence) scanner { return intTo(&e.Fence) }},
	{Column{"detail", Human, false}, true, func(e *store.Evidence) any { return human(e.Detail) }, func(e *store.Evidence) scanner { return textTo(&e.Detail) }},
	{Column{"raw", Blob, false}, true, func(e *store.Evidence) any { return blob(e.Raw) }, func(e *store.Evidence) scanner { return bytesTo(&e.Raw) }},
	{Column{"made_at", Int, false}, true, func(e *store.Evidence) any { return micros(e.At) }, func(e *store.Evidence) scanner { return timeTo(&e.At) }},
})

var answerRows = newRows("answers", []field[store.Answer]{
	{Column{"payment_id", ID, false}, true, func(a *store.Answer) any { return a.PaymentID }, func(a *store.Answer) scanner { return textTo(&a.PaymentID) }},
	{Column{"status", ID, false}, true, func(a *store.Answer) any { return string(a.Status) }, func(a *store.Answer) scanner { return textTo(&a.Status) }},
	{Column{"http_status", Int, false}, true, func(a *store.Answer) any { return int64(a.HTTPStatus) }, func(a *store.Answer) scanner { return intTo(&a.HTTPStatus) }},
	{Column{"content_type", Human, false}, true, func(a *store.Answer) any { return human(a.ContentType) }, func(a *store.Answer) scanner { return textTo(&a.ContentType) }},
	{Column{"body", Blob, false}, true, func(a *store.Answer) any { return blob(a.Body) }, func(a *store.Answer) scanner { return bytesTo(&a.Body) }},
})

var eventRows = newRows("events", []field[store.OutboxEvent]{
	{Column{"id", ID, false}, true, func(e *store.OutboxEvent) any { return e.ID }, func(e *store.OutboxEvent) scanner { return textTo(&e.ID) }},
	{Column{"merchant", Name, false}, true, func(e *store.OutboxEvent) any { return e.Order.Merchant }, func(e *store.OutboxEvent) scanner { return textTo(&e.Order.Merchant) }},
	{Column{"environment", ID, false}, true, func(e *store.OutboxEvent) any { return string(e.Order.Environment) }, func(e *store.OutboxEvent) scanner { return textTo(&e.Order.Environment) }},
	{Column{"order_no", Name, false}, true, func(e *store.OutboxEvent) any { return e.Order.OrderNo }, func(e *store.OutboxEvent) scanner { return textTo(&e.Order.OrderNo) }},
	{Column{"type", ID, false}, true, func(e *store.OutboxEvent) any { return e.Type }, func(e *store.OutboxEvent) scanner { return textTo(&e.Type) }},
	{Column{"subject", ID, false}, true, func(e *store.OutboxEvent) any { return e.Subject }, func(e *store.OutboxEvent) scanner { return textTo(&e.Subject) }},
	{Column{"change_no", Int, false}, true, func(e *store.OutboxEvent) any { return e.Change }, func(e *store.OutboxEvent) scanner { return intTo(&e.Change) }},
	{Column{"data", Blob, false}, true, func(e *store.OutboxEvent) any { return blob(e.Data) }, func(e *store.OutboxEvent) scanner { return bytesTo(&e.Data) }},
	{Column{"made_at", Int, false}, true, func(e *store.OutboxEvent) any { return micros(e.At) }, func(e *store.OutboxEvent) scanner { return timeTo(&e.At) }},
})

var auditRows = newRows("audit", []field[store.AuditRow]{
	{Column{"order_id", ID, false}, true, func(a *store.AuditRow) any { return a.OrderID }, func(a *store.AuditRow) scanner { return textTo(&a.OrderID) }},
	{Column{"n", Int, false}, true, func(a *store.AuditRow) any { return a.N }, func(a *store.AuditRow) scanner { return intTo(&a.N) }},
	{Column{"actor", Name, false}, true, func(a *store.AuditRow) any { return a.Actor }, func(a *store.AuditRow) scanner { return textTo(&a.Actor) }},
	{Column{"changes", JSON, false}, true, func(a *store.AuditRow) any { return jsonText(a.Changes, len(a.Changes) == 0) }, func(a *store.AuditRow) scanner { return jsonTo(&a.Changes) }},
	{Column{"salt", Salt, false}, true, func(a *store.AuditRow) any { return append([]byte(nil), a.Salt[:]...) }, func(a *store.AuditRow) scanner { return fixedTo(a.Salt[:]) }},
	{Column{"hash", Hash, false}, true, func(a *store.AuditRow) any { return append([]byte(nil), a.Hash[:]...) }, func(a *store.AuditRow) scanner { return fixedTo(a.Hash[:]) }},
	{Column{"made_at", Int, false}, true, func(a *store.AuditRow) any { return micros(a.At) }, func(a *store.AuditRow) scanner { return timeTo(&a.At) }},
})

var apiKeyRows = newRows("api_keys", []field[store.APIKey]{
	{Column{"id", ID, false}, true, func(k *store.APIKey) any { return k.ID }, func(k *store.APIKey) scanner { return textTo(&k.ID) }},
	{Column{"hash", Hash, false}, true, func(k *store.APIKey) any { return append([]byte(nil), k.Hash[:]...) }, func(k *store.APIKey) scanner { return fixedTo(k.Hash[:]) }},
	{Column{"merchant", Name, false}, true, func(k *store.APIKey) any { return k.Merchant }, func(k *store.APIKey) scanner { return textTo(&k.Merchant) }},
	{Column{"environment", ID, false}, true, func(k *store.APIKey) any { return string(k.Environment) }, func(k *store.APIKey) scanner { return textTo(&k.Environment) }},
	{Column{"role", ID, false}, true, func(k *store.APIKey) any { return k.Role }, func(k *store.APIKey) scanner { return textTo(&k.Role) }},
	{Column{"created_at", Int, false}, true, func(k *store.APIKey) any { return micros(k.CreatedAt) }, func(k *store.APIKey) scanner { return timeTo(&k.CreatedAt) }},
	{Column{"revoked_at", Int, false}, false, func(k *store.APIKey) any { return micros(k.RevokedAt) }, func(k *store.APIKey) scanner { return timeTo(&k.RevokedAt) }},
})
