package payonce_test

import (
	"fmt"

	"github.com/payonce/payonce"
)

// broken returns which invariant of the design the order breaks as it stands,
// "" for none. It adds everything up anew.
func broken(a *payonce.Aggregate) string {
	for _, check := range []func(*payonce.Aggregate) string{slots, sums, ends, proofs, history} {
		if bad := check(a); bad != "" {
			return bad
		}
	}
	return ""
}

// slots: invariants 1 and 2.
func slots(a *payonce.Aggregate) string {
	held := map[string]string{}
	effective := map[string]string{}
	for _, p := range a.Payments {
		slot := p.OrderID + ":" + p.Part
		if p.Status.Live() && !p.Superseded {
			if other := held[slot]; other != "" {
				return fmt.Sprintf("%s and %s are live in one slot", other, p.ID)
			}
			held[slot] = p.ID
		}
		if p.Effective {
			if other := effective[slot]; other != "" {
				return fmt.Sprintf("%s and %s are effective in one slot", other, p.ID)
			}
			effective[slot] = p.ID
		}
		if (p.LiveSlot() != "") != (p.Status.Live() && !p.Superseded) || (p.EffectiveSlot() != "") != p.Effective {
			return p.ID + " names slots that it does not hold"
		}
	}
	for slot, id := range held {
		if other := effective[slot]; other != "" {
			return fmt.Sprintf("%s is live beside %s, which pays", id, other)
		}
	}
	if a.Order.Policy != payonce.PolicySplit && len(effective) > 1 {
		return "two payments pay a single order"
	}
	for _, p := range a.Payments {
		if p.Effective && a.Order.Policy != payonce.PolicySplit && p.Amount != a.Order.Amount {
			return fmt.Sprintf("%s of %d pays an order of %d", p.ID, p.Amount, a.Order.Amount)
		}
	}
	return ""
}

// sums: the order's sums are those of its rows, and never more than its amount.
func sums(a *payonce.Aggregate) string {
	var reserved, paid, effective, surplus payonce.Amount
	for _, p := range a.Payments {
		if p.Status.Live() && !p.Superseded {
			reserved += p.Amount
		}
		if p.Effective {
			paid += p.Amount
		}
	}
	for _, c := range a.Charges {
		switch c.Kind {
		case payonce.ChargeEffective:
			effective += c.Amount
		case payonce.ChargeSurplus:
			surplus += c.Amount
		case payonce.ChargeMismatch:
		default:
			return "charge " + c.ID + " has no kind"
		}
	}
	o := a.Order
	switch {
	case o.Reserved != reserved:
		return fmt.Sprintf("reserved is %d, live payments hold %d", o.Reserved, reserved)
	case o.AmountPaid != paid || effective != paid:
		return fmt.Sprintf("paid is %d, effective payments %d, effective charges %d", o.AmountPaid, paid, effective)
	case o.AmountSurplus != surplus:
		return fmt.Sprintf("surplus is %d, surplus charges %d", o.AmountSurplus, surplus)
	case reserved+paid > o.Amount:
		return fmt.Sprintf("reserved %d and paid %d are more than the order's %d", reserved, paid, o.Amount)
	case o.Status == payonce.OrderPaid && paid != o.Amount:
		return "PAID without its money"
	case o.Status == payonce.OrderOpen && paid != 0:
		return "OPEN although something is paid"
	case o.Status == payonce.OrderPartiallyPaid && (paid == 0 || paid == o.Amount):
		return "PARTIALLY_PAID with nothing or everything paid"
	case o.Status == payonce.OrderClosed && a.AnyLive():
		return "CLOSED while a payment may take money"
	}
	return ""
}

// ends: invariants 5, 6 and 12.
func ends(a *payonce.Aggregate) string {
	bound := map[string]bool{}
	for _, c := range a.Charges {
		key := c.Account + "/" + c.PaymentRef
		if bound[key] || c.PaymentRef == "" || c.EvidenceID == "" || c.Amount < 1 {
			return "charge " + c.ID + " is doubled or incomplete"
		}
		bound[key] = true
	}
	for _, p := range a.Payments {
		own, match := 0, false
		for _, c := range a.Charges {
			if c.PaymentID == p.ID {
				own++
				match = match || c.Account == p.Account && c.Amount == p.Amount && c.Currency == p.Currency && c.Kind != payonce.ChargeMismatch
			}
		}
		switch {
		case own != p.ChargeCount:
			return fmt.Sprintf("%s counts %d charges and has %d", p.ID, p.ChargeCount, own)
		case !p.Status.Live() && p.EvidenceID == "":
			return p.ID + " is " + string(p.Status) + " without evidence"
		case p.Status == payonce.Succeeded && !match:
			return p.ID + " succeeded without a charge that matches"
		case p.Effective && p.Status != payonce.Succeeded:
			return p.ID + " pays and has not succeeded"
		case p.Action != nil && (!p.Status.Live() || p.Superseded):
			return p.ID + " keeps an action that may not be shown"
		}
	}
	return ""
}

// proofs: what the books prove ended one payment of the order, which had not been
// sent, by the evidence that the books gave.
func proofs(a *payonce.Aggregate) string {
	once := map[string]bool{}
	for _, proof := range a.Proofs {
		p := a.Payment(proof.PaymentID)
		if proof.ID == "" || once[proof.ID] || p == nil {
			return fmt.Sprintf("the proof %+v is doubled or of no payment", proof)
		}
		once[proof.ID] = true
		named := 0
		for _, c := range a.Changes {
			if c.EvidenceID != proof.ID {
				continue
			}
			if named++; c.PaymentID != p.ID || c.To != string(payonce.Cancelled) || c.Cause != proof.Cause {
				return fmt.Sprintf("the proof %+v made %+v", proof, c)
			}
		}
		if named != 1 {
			return fmt.Sprintf("the proof %+v ended %d payments", proof, named)
		}
	}
	return ""
}

// history: invariant 16, and each change starts where the one before it ended.
func history(a *payonce.Aggregate) string {
	once := map[payonce.Event]bool{}
	final := ""
	for _, e := range a.Events {
		if once[e] {
			return fmt.Sprintf("event %+v twice", e)
		}
		once[e] = true
		if e.Type == "order.paid" || e.Type == "order.closed" {
			if final != "" {
				return "the order announced " + final + " and then " + e.Type
			}
			final = e.Type
		}
	}
	last := map[string]string{}
	for _, c := range a.Changes {
		if at, ok := last[c.PaymentID]; ok && at != c.From {
			return fmt.Sprintf("%q went to %s and then left %s", c.PaymentID, at, c.From)
		}
		last[c.PaymentID] = c.To
		if c.PaymentID == "" && c.From == string(payonce.OrderClosed) {
			return "a CLOSED order was reopened as " + c.To
		}
	}
	return ""
}
