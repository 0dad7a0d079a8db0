package web

import (
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

// phase is what a payer is told.
type phase string

const (
	phaseReady       phase = "ready"       // may pay
	phaseDeclined    phase = "declined"    // the last attempt took no money; may pay
	phaseCancelled   phase = "cancelled"   // the last attempt ended without money; may pay
	phaseWaiting     phase = "waiting"     // the payer has to do something at the channel
	phaseConfirming  phase = "confirming"  // the outcome is not known yet
	phasePaid        phase = "paid"        // final
	phaseClosed      phase = "closed"      // final
	phaseUnavailable phase = "unavailable" // cannot be paid on this page
)

// view is the state of an order as a page shows it.
type view struct {
	Phase   phase
	Order   *payonce.Order
	Payment *payonce.Payment // the one that the phase speaks of, nil when none
	Action  *payonce.Action  // only while waiting
	// ActionEnds is when the action can no longer be used, zero when nothing says.
	ActionEnds time.Time
	// FreeAt is when the channel's own answer proves that the live payment takes
	// no more money, zero when nothing says. Another way to pay opens then at the
	// latest.
	FreeAt time.Time
	Now    int64 // of the look, Unix milliseconds: what is counted down starts here
	// Ended counts the attempts that have ended without money: the payer's next
	// wish is named by it.
	Ended   int
	Surplus bool // the channel took more than the order wanted
}

// MayPay reports whether the page has a pay button.
func (v *view) MayPay() bool {
	return v.Phase == phaseReady || v.Phase == phaseDeclined || v.Phase == phaseCancelled
}

// Final reports whether the page may stop asking. A payment under one of the
// ready phases may still be made in another tab, so only an end is final.
func (v *view) Final() bool { return v.Phase == phasePaid || v.Phase == phaseClosed }

// Replace is the payment that a new wish replaces: one whose last try was
// declined but whose object the payer could use again, or one that waits for a
// payer who wants another way. The engine closes it at the channel first.
func (v *view) Replace() string {
	declined := v.MayPay() && v.Payment != nil && v.Payment.Status == payonce.Pending
	if declined || v.Phase == phaseWaiting {
		return v.Payment.ID
	}
	return ""
}

// endedMeanwhile reports whether the order may be paid because this payment,
// its latest, has ended without money.
func (v *view) endedMeanwhile(id string) bool {
	return v.MayPay() && v.Payment != nil && v.Payment.ID == id && !v.Payment.Status.Live()
}

// look decides what a payer is told about an order.
func look(o *store.OrderWithPayments, now time.Time) *view {
	v := &view{Phase: phaseReady, Order: o.Order, Now: now.UnixMilli(), Surplus: o.Order.AmountSurplus > 0}
	var live, last *payonce.Payment
	for _, p := range o.Payments {
		switch {
		case p.Status == payonce.Failed || p.Status == payonce.Cancelled:
			v.Ended++
			last = p
		case p.Status == payonce.Succeeded && !p.Effective:
			v.Ended++ // surplus: its wish is over, though it is not the payer's last word
		case p.LiveSlot() != "":
			live = p
		}
		if p.Effective {
			v.Payment = p
		}
	}
	chargeable := o.Order.Chargeable(now)
	switch {
	case o.Order.Status == payonce.OrderPaid:
		v.Phase = phasePaid
	case live != nil:
		v.Payment = live
		v.Phase, v.Action = lookLive(o.Order, live, now)
		v.ActionEnds, v.FreeAt = ends(live)
	case o.Order.Status == payonce.OrderClosing:
		v.Phase = phaseConfirming // something superseded may still take money
	case !chargeable:
		v.Phase = phaseClosed
	case o.Order.Policy != payonce.PolicySingle:
		v.Phase = phaseUnavailable
	case last != nil && last.Status == payonce.Failed:
		v.Phase, v.Payment = phaseDeclined, last
	case last != nil:
		v.Phase, v.Payment = phaseCancelled, last
	}
	return v
}

func lookLive(o *payonce.Order, p *payonce.Payment, now time.Time) (phase, *payonce.Action) {
	if p.Status != payonce.Pending {
		return phaseConfirming, nil
	}
	action := o.Shows(p, now)
	switch {
	case p.Declined && o.Chargeable(now):
		return phaseDeclined, nil
	case action != nil:
		return phaseWaiting, action
	}
	return phaseConfirming, nil
}

// ends says when what a live payment's payer was shown is over, and when that
// can be proved.
func ends(p *payonce.Payment) (action, free time.Time) {
	action = p.DeadAt
	if p.Action != nil && !p.Action.ExpiresAt.IsZero() && (action.IsZero() || p.Action.ExpiresAt.Before(action)) {
		action = p.Action.ExpiresAt
	}
	if !p.DeadAt.IsZero() {
		free = p.DeadAt.Add(payonce.DeathMargin)
	}
	return action, free
}

// money prints an amount with its currency, for people.
func money(a payonce.Amount, c payonce.Currency) string {
	text, err := c.Format(a)
	if err != nil {
		return string(c)
	}
	return text + " " + string(c)
}
