package payonce

import "time"

// Apply lets one fact act on one payment of the order. It is the only function
// that changes a state because of what a channel says.
//
// Facts may come in any order and any number of times: states and charges end
// the same. Positive knowledge (settled, waiting, dead, ids) acts on the row as
// it now is, whatever fence its asker held. Negative knowledge acts only while
// nothing else has happened since the question: refused while its permit is the
// last one given, absent and not-sent while the version is the one that was
// read before. FAILED and CANCELLED are reached only with evidence.
func (a *Aggregate) Apply(p *Payment, f Fact) Verdict {
	before := p.Version
	v := Verdict{}
	if why, alarm := a.unusable(p, f); why != "" {
		f = Fact{Source: f.Source, Reason: why, Fence: f.Fence, EvidenceID: f.EvidenceID}
		v.Alarm = alarm
	}
	side := p.sideObject(f)
	if !side {
		p.endPermit(f)
	}
	switch {
	case f.Kind == StateSettled:
		v.Alarm = a.settle(p, f, side)
		if side {
			a.noKnowledge(p, f)
		}
	case side:
		// Another object of this number: only its success counts.
		a.noKnowledge(p, f)
	case f.Kind == StateDead:
		a.dead(p, f)
	case f.Kind == StateDeclined:
		a.declined(p, f)
	case f.Kind == StateWaiting:
		a.waiting(p, f)
	case f.Kind == StateUnconfirmed:
		a.see(p)
	case f.Kind == StateAbsent:
		a.absent(p, f)
	case f.Kind == StateRefused:
		a.refused(p, f)
	case f.Kind == StateNotSent:
		a.notSent(p, f)
	case f.Kind == StateNeverSent:
		a.CancelUnsent(p, f.Reason)
	default:
		a.noKnowledge(p, f)
	}
	v.Changed = p.Version != before
	return v
}

// unusable says why a fact is no knowledge of this payment, "" when it is, and
// which alarm it raises.
func (a *Aggregate) unusable(p *Payment, f Fact) (why, alarm string) {
	switch {
	case f.Kind == StateUnknown:
		// It says nothing that could be misread.
		if foreign(p, f) {
			return "foreign-answer", AlarmForeign
		}
	case foreign(p, f):
		// It speaks about somebody else's money.
		return "foreign-answer", AlarmForeign
	case f.EvidenceID == "" && f.Kind != StateNeverSent:
		return "no-evidence", ""
	case f.Kind == StateRefused || f.Kind == StateNotSent:
		// These speak about one request that would have made or moved something. A
		// question or a close that did not get through says nothing of the payment.
		if f.Source != "begin" && f.Source != "prepare" {
			return "not-answered", ""
		}
	case f.Kind == StateSettled:
		return a.unusableSuccess(p, f)
	}
	return "", ""
}

func foreign(p *Payment, f Fact) bool {
	return f.Number != "" && f.Number != p.Number || f.Account != "" && f.Account != p.Account
}

// unusableSuccess: a success names our account, our number (or the object that
// is ours), the channel's own payment and how much it took. Less than that
// cannot be bound to a payment, and money is never guessed at.
func (a *Aggregate) unusableSuccess(p *Payment, f Fact) (why, alarm string) {
	ours := f.Number == p.Number || f.Number == "" && f.Object != "" && f.Object == p.ObjectID
	if !ours || f.Account != p.Account {
		return "foreign-answer", AlarmForeign
	}
	if f.PaymentRef == "" || f.Amount < 1 || !currencyForm(f.Currency) {
		return "success-incomplete", AlarmMismatch
	}
	if c := a.charge(p.Account, f.PaymentRef); c != nil && c.PaymentID != p.ID {
		// The channel's payment is bound to another attempt and stays there.
		return "foreign-answer", AlarmForeign
	}
	return "", ""
}

func currencyForm(c Currency) bool {
	for i := range len(c) {
		if c[i] < 'A' || c[i] > 'Z' {
			return false
		}
	}
	return len(c) == 3
}

// sideObject reports whether a fact names another object than the payment's. A
// prepared payment without a stored object has none yet: whatever is said of an
// object then is not said of the one that will be stored. A success counts
// still, since it took money under our number.
func (p *Payment) sideObject(f Fact) bool {
	if f.Object == "" || f.Object == p.ObjectID {
		return false
	}
	return p.ObjectID != "" || p.Prepares > 0 && f.Kind != StateSettled
}

// endPermit records how the send of a permit ended. That a request of ours had
// no effect stays true whatever happened meanwhile, so no fence is asked.
func (p *Payment) endPermit(f Fact) {
	if f.Permit < 1 || f.Permit > len(p.Permits) {
		return
	}
	end := &p.Permits[f.Permit-1].End
	if *end != EndOpen {
		return
	}
	switch f.Kind {
	case StateSettled, StateWaiting, StateDeclined:
		*end = EndAccepted
		p.Accepted = true
	case StateRefused:
		*end = EndRefused
	case StateNotSent:
		*end = EndNotSent
	}
}

func (a *Aggregate) see(p *Payment) {
	if !p.Seen {
		p.Seen = true
		a.touch(p)
	}
}

// settle records a success: the first charge of a payment makes it SUCCEEDED,
// each further one is surplus.
func (a *Aggregate) settle(p *Payment, f Fact, side bool) string {
	matches := f.Amount == p.Amount && f.Currency == p.Currency
	known := a.charge(p.Account, f.PaymentRef)
	if known != nil && (known.Kind != ChargeMismatch || !matches) {
		return a.again(p, known, f)
	}
	if !matches {
		a.mismatch(p, f)
		return AlarmMismatch
	}
	c := known
	if c == nil {
		c = a.addCharge(p, f)
	}
	c.Amount, c.Currency, c.EvidenceID = f.Amount, f.Currency, f.EvidenceID
	if side || p.Status == Succeeded {
		a.surplus(p, c)
		return AlarmSurplus
	}
	return a.succeed(p, c, f)
}

// again: the channel repeats a success that is on the books. Of a mismatch the
// largest captured amount is kept, so that the order of the statements does not
// decide how much has to be given back.
func (a *Aggregate) again(p *Payment, known *Charge, f Fact) string {
	if known.Amount == f.Amount && known.Currency == f.Currency {
		return ""
	}
	if f.Amount == p.Amount && f.Currency == p.Currency {
		return AlarmMismatch
	}
	more := f.Amount > known.Amount || f.Amount == known.Amount && f.Currency > known.Currency
	if known.Kind == ChargeMismatch && more {
		known.Amount, known.Currency, known.EvidenceID = f.Amount, f.Currency, f.EvidenceID
		a.touch(p)
	}
	return AlarmMismatch
}

// disputed reports whether a success with another amount or currency waits for
// people: the payment stays UNKNOWN until a success, its death or their statement.
func (a *Aggregate) disputed(p *Payment) bool {
	for _, c := range a.Charges {
		if c.PaymentID == p.ID && c.Kind == ChargeMismatch {
			return true
		}
	}
	return false
}

func (a *Aggregate) succeed(p *Payment, c *Charge, f Fact) string {
	a.unreserve(p)
	p.Seen = true
	p.EvidenceID = f.EvidenceID
	p.ChannelPaymentID = f.PaymentRef
	p.SucceededAt = a.Now
	p.Failure = nil
	p.Action = nil
	a.Release(p, time.Time{})
	alarm := ""
	if a.fits(p) {
		c.Kind = ChargeEffective
		a.move(p, Succeeded, f.Source, f.EvidenceID)
		p.Effective = true
		a.Order.AmountPaid += p.Amount
		a.announce("payment.succeeded", p)
		// First paid, then room: an attempt that ends while room is made must not
		// finish the closing of an order that this success has just paid.
		a.paid()
		a.makeRoom(p)
	} else {
		a.move(p, Succeeded, f.Source, f.EvidenceID)
		a.surplus(p, c)
		alarm = AlarmSurplus
	}
	a.FinishClose()
	return alarm
}

// fits decides, once and by the first commit, whether a success pays the order.
// A newer live payment does not prevent it.
func (a *Aggregate) fits(p *Payment) bool {
	o := a.Order
	if o.Status == OrderClosed || a.Effective(p.Part) != nil || p.Currency != o.Currency {
		return false
	}
	if o.Policy != PolicySplit {
		return p.Amount == o.Amount
	}
	total, err := o.AmountPaid.Add(p.Amount)
	return err == nil && total <= o.Amount
}

// makeRoom supersedes live payments that lost to this success: those of its
// part, then the newest, until paid and reserved fit the order again.
func (a *Aggregate) makeRoom(winner *Payment) {
	o := a.Order
	over := func() bool { return o.Reserved+o.AmountPaid > o.Amount }
	for i := len(a.Payments) - 1; i >= 0; i-- {
		if q := a.Payments[i]; q != winner && q.LiveSlot() != "" && q.Part == winner.Part {
			a.supersede(q)
		}
	}
	for i := len(a.Payments) - 1; i >= 0 && over(); i-- {
		if q := a.Payments[i]; q != winner && q.LiveSlot() != "" {
			a.supersede(q)
		}
	}
}

func (a *Aggregate) supersede(q *Payment) {
	a.unreserve(q)
	q.Superseded = true
	q.Action = nil
	q.Fence++
	a.touch(q)
	a.note(q, string(q.Status), string(q.Status), "superseded", "")
	if q.Status == Created && a.CancelUnsent(q, "superseded") {
		return
	}
	q.DueAt = a.Now
}

func (a *Aggregate) paid() {
	o := a.Order
	switch {
	case o.AmountPaid == o.Amount:
		a.orderTo(OrderPaid, "paid")
		a.Events = append(a.Events, Event{Type: "order.paid", Subject: o.ID})
	case o.Status == OrderOpen:
		a.orderTo(OrderPartiallyPaid, "paid")
	default:
		o.UpdatedAt = a.Now
	}
}

func (a *Aggregate) surplus(p *Payment, c *Charge) {
	c.Kind = ChargeSurplus
	a.Order.AmountSurplus += c.Amount
	a.Order.UpdatedAt = a.Now
	a.touch(p)
	a.announce("payment.surplus", p)
}

// mismatch keeps a success of our number with another amount or currency as a
// charge for people to judge. It never pays the order.
func (a *Aggregate) mismatch(p *Payment, f Fact) {
	c := a.addCharge(p, f)
	c.Kind = ChargeMismatch
	p.Seen = true
	if p.Status.Live() {
		a.move(p, Unknown, "mismatch", f.EvidenceID)
		p.UnknownReason = "mismatch"
	}
	a.touch(p)
	a.announce("payment.mismatch", p)
}

func (a *Aggregate) charge(account, ref string) *Charge {
	for _, c := range a.Charges {
		if c.Account == account && c.PaymentRef == ref {
			return c
		}
	}
	return nil
}

func (a *Aggregate) addCharge(p *Payment, f Fact) *Charge {
	at := f.At
	if at.IsZero() {
		at = a.Now
	}
	p.ChargeCount++
	c := &Charge{ID: a.NewID("chg_"), PaymentID: p.ID, OrderID: p.OrderID, Account: p.Account,
		PaymentRef: f.PaymentRef, Amount: f.Amount, Currency: f.Currency, EvidenceID: f.EvidenceID, ChargedAt: at}
	a.Charges = append(a.Charges, c)
	return c
}

func (a *Aggregate) dead(p *Payment, f Fact) {
	if !p.Dead {
		p.Dead = true
		p.Seen = true
		a.touch(p)
	}
	if p.Status.Live() {
		a.end(p, f)
	}
}

// end finishes a payment that can take no money any more: FAILED when a try was
// declined or refused, CANCELLED otherwise.
func (a *Aggregate) end(p *Payment, f Fact) {
	if p.Declined {
		a.finish(p, Failed, f.Kind.String(), f.EvidenceID)
	} else {
		a.finish(p, Cancelled, f.Kind.String(), f.EvidenceID)
	}
}

// declined: the last try failed. The order is free only once the object can
// take no more money, so the payment stays live until it is closed; one that
// the payer holds is PENDING.
func (a *Aggregate) declined(p *Payment, f Fact) {
	first := !p.Declined
	p.Seen, p.Declined = true, true
	if p.Status != Succeeded && f.Failure != nil && (first || p.Status.Live()) {
		p.Failure = f.Failure
	}
	switch {
	case !p.Status.Live():
		if p.Status == Cancelled {
			a.refail(p, f)
		}
	case provenDead(p, f, a.Now, true):
		a.finish(p, Failed, "declined", f.EvidenceID)
	case p.HandedOut && !a.disputed(p):
		a.move(p, Pending, "declined", f.EvidenceID)
	}
	if first {
		a.touch(p)
	}
}

// refail turns CANCELLED into FAILED on a later proof of refusal: both are ends
// without money, and the order of the facts must not decide which one shows.
func (a *Aggregate) refail(p *Payment, f Fact) {
	a.note(p, string(p.Status), string(Failed), f.Kind.String(), f.EvidenceID)
	p.Status, p.EvidenceID = Failed, f.EvidenceID
	a.touch(p)
	a.announce("payment.failed", p)
}

// waiting: the channel has accepted and waits. The action is stored where there
// is none, and only while it may be shown.
func (a *Aggregate) waiting(p *Payment, f Fact) {
	a.see(p)
	if f.Authorized > p.AmountAuthorized {
		p.AmountAuthorized = f.Authorized
		a.touch(p)
	}
	if !p.Status.Live() || a.disputed(p) {
		return
	}
	a.move(p, Pending, f.Source, f.EvidenceID)
	fresh := p.Action == nil || (f.Permit > 0 && f.Fence == p.Fence)
	if f.Action != nil && fresh && !p.Superseded && !p.GivenUp && a.Order.Chargeable(a.Now) {
		p.Action, p.HandedOut = f.Action, true
		a.touch(p)
	}
}

func (a *Aggregate) absent(p *Payment, f Fact) {
	// A channel that has taken money under the number does not lose it again, and
	// while a call is under way its own answer decides.
	if !p.Status.Live() || p.Status == Processing || p.ChargeCount > 0 || f.Version != p.Version {
		return
	}
	if provenDead(p, f, a.Now, false) {
		a.end(p, f)
	}
}

// provenDead: absence or a decline proves death in two cases only. Either no
// send can be in flight and the channel's own time lies past dead_at; or, for
// absence, nobody was ever given the only key to the object.
func provenDead(p *Payment, f Fact, now time.Time, declined bool) bool {
	if !p.DeadAt.IsZero() && !f.ServerDate.IsZero() && f.ServerDate.After(p.DeadAt.Add(DeathMargin)) &&
		f.SendWindow > 0 && !p.SendInFlight(now, f.SendWindow) {
		return true
	}
	return !declined && f.OnlyByAction && !p.HandedOut && p.ObjectID == ""
}

// refused: this request had no effect. The payment fails only if no other send
// can have had one.
func (a *Aggregate) refused(p *Payment, f Fact) {
	last := f.Permit == len(p.Permits) && (f.Permit > 0 || f.Source == "prepare" && f.Fence == p.Fence)
	if !last || p.Status == Succeeded || p.Status == Failed || p.Status == Created {
		return
	}
	if p.ObjectID != "" && p.Status.Live() {
		// The object is closed before the payment fails. A refusal speaks about one
		// request alone, so it proves nothing of the object, however late it comes.
		p.Declined, p.Failure = true, f.Failure
		a.touch(p)
		if p.Status == Processing && !p.sendsEnded() {
			a.move(p, Unknown, "refused", f.EvidenceID)
			p.UnknownReason = "refused"
		}
		return
	}
	switch {
	case p.sendsEnded() && p.Status == Cancelled:
		p.Declined, p.Failure = true, f.Failure
		a.refail(p, f)
	case p.sendsEnded() && !p.Seen:
		p.Declined, p.Failure = true, f.Failure
		a.finish(p, Failed, "refused", f.EvidenceID)
	case p.Status == Processing:
		a.move(p, Unknown, "refused", f.EvidenceID)
		p.UnknownReason = "refused"
	}
}

// notSent: no byte of this request left. The payment is as it was before, if no
// other send can have had an effect.
func (a *Aggregate) notSent(p *Payment, f Fact) {
	if p.Status != Processing || f.Fence != p.Fence {
		return
	}
	if f.Version == p.Version && p.NeverSent() {
		a.move(p, Created, "not-sent", f.EvidenceID)
		return
	}
	a.move(p, Unknown, "not-sent", f.EvidenceID)
	p.UnknownReason = "not-sent"
}

func (a *Aggregate) noKnowledge(p *Payment, f Fact) {
	if p.Status == Processing && f.Fence == p.Fence {
		a.move(p, Unknown, f.Reason, f.EvidenceID)
		p.UnknownReason = f.Reason
	}
}
