package payonce_test

import (
	"slices"
	"time"

	"github.com/payonce/payonce"
)

// A scene is one combination of what a payment is and what is said about it.
// Everything in it is data, so that the oracle below can judge it without
// calling the code under test.
type scene struct {
	from       payonce.PaymentStatus
	order      payonce.OrderStatus
	split      bool
	superseded bool
	handedOut  bool
	seen       bool                // an authenticated answer has shown the number
	declined   bool                // a try failed before
	prepared   bool                // its object is stored
	permits    []payonce.PermitEnd // as recorded before the fact

	kind      payonce.FactKind
	mismatch  bool // of settled: another amount
	side      bool // it names another object
	source    string
	oldFence  bool
	oldVer    bool
	permit    int // number in the fact, 0 none
	dated     bool
	past      bool // the channel's own date lies past dead_at and the margin
	inFlight  bool // open permits are younger than the send window
	onlyByKey bool // the object can be paid only by who holds its action
}

func (s scene) live() bool {
	return slices.Contains([]payonce.PaymentStatus{payonce.Created, payonce.Processing, payonce.Pending, payonce.Unknown}, s.from)
}

func (s scene) request() bool { return s.source == "begin" || s.source == "prepare" }

// harmless: every permit has a recorded end that says that nothing happened,
// the end that this very fact records included, and nothing speaks against it.
func (s scene) harmless() bool {
	for i, end := range s.permits {
		if end == payonce.EndOpen && s.permit == i+1 && !s.side && s.request() &&
			(s.kind == payonce.StateRefused || s.kind == payonce.StateNotSent) {
			continue
		}
		if end != payonce.EndRefused && end != payonce.EndNotSent {
			return false
		}
	}
	return !s.handedOut
}

// pastDeath is design section 2, rule 2 (a).
func (s scene) pastDeath() bool {
	return s.dated && s.past && !(s.inFlight && slices.Contains(s.permitsAfter(), payonce.EndOpen))
}

func (s scene) permitsAfter() []payonce.PermitEnd {
	out := slices.Clone(s.permits)
	if s.permit > 0 && !s.side && out[s.permit-1] == payonce.EndOpen && s.kind == payonce.StateDeclined {
		out[s.permit-1] = payonce.EndAccepted
	}
	return out
}

// A rule says what has to happen. The first rule that speaks about a scene
// decides; where none speaks, the payment stays what it is.
type rule struct {
	name string
	when func(s scene) bool
	to   payonce.PaymentStatus // "" stays
}

func is(kinds ...payonce.FactKind) func(scene) bool {
	return func(s scene) bool { return slices.Contains(kinds, s.kind) }
}

func in(states ...payonce.PaymentStatus) func(scene) bool {
	return func(s scene) bool { return slices.Contains(states, s.from) }
}

func all(fs ...func(scene) bool) func(scene) bool {
	return func(s scene) bool {
		for _, f := range fs {
			if !f(s) {
				return false
			}
		}
		return true
	}
}

func not(f func(scene) bool) func(scene) bool { return func(s scene) bool { return !f(s) } }

var (
	live        = scene.live
	harmless    = scene.harmless
	ownFence    = func(s scene) bool { return !s.oldFence }
	fresh       = func(s scene) bool { return !s.oldVer }
	lastPermit  = func(s scene) bool { return s.permit > 0 && s.permit == len(s.permits) }
	prepareOnly = func(s scene) bool {
		return s.source == "prepare" && s.permit == 0 && len(s.permits) == 0 && !s.oldFence
	}
	counts    = func(s scene) bool { return lastPermit(s) || prepareOnly(s) }
	hasObject = func(s scene) bool { return s.prepared }
	seen      = func(s scene) bool { return s.seen }
	handedOut = func(s scene) bool { return s.handedOut }
	declined  = func(s scene) bool { return s.declined }
	unseen    = func(s scene) bool { return !s.seen || s.prepared } // nothing at the channel but our own prepared object
	noOneHas  = func(s scene) bool { return s.onlyByKey && !s.handedOut && !s.prepared }
	noWord    = func(s scene) bool { // carries no knowledge of this payment's state
		if s.kind == payonce.StateRefused || s.kind == payonce.StateNotSent {
			return s.side || !s.request()
		}
		return s.side || s.kind == payonce.StateUnknown
	}
)

// rules is design section 2 in the order in which it is to be read.
var rules = []rule{
	{"SUCCEEDED is never left", in(payonce.Succeeded), ""},

	{"another object's success is a surplus charge, no state; its asker's call has ended without knowledge",
		all(is(payonce.StateSettled), func(s scene) bool { return s.side && !s.mismatch }, in(payonce.Processing), ownFence), payonce.Unknown},
	{"another object's success is a surplus charge, no state",
		all(is(payonce.StateSettled), func(s scene) bool { return s.side && !s.mismatch }), ""},
	{"a mismatch waits for people in UNKNOWN",
		all(is(payonce.StateSettled), func(s scene) bool { return s.mismatch }, live), payonce.Unknown},
	{"a mismatch does not open what has ended",
		all(is(payonce.StateSettled), func(s scene) bool { return s.mismatch }), ""},
	{"success counts whatever the fence, version, permit and state", is(payonce.StateSettled), payonce.Succeeded},

	{"a call that ended without knowledge", all(noWord, in(payonce.Processing), ownFence), payonce.Unknown},
	{"no knowledge changes nothing else", noWord, ""},

	{"the channel states that it can never take money, a decline is on the books", all(is(payonce.StateDead), live, declined), payonce.Failed},
	{"the channel states that it can never take money", all(is(payonce.StateDead), live), payonce.Cancelled},
	{"the channel waits", all(is(payonce.StateWaiting), live), payonce.Pending},
	{"a prepared object that was not confirmed proves nothing", is(payonce.StateUnconfirmed), ""},

	{"CANCELLED becomes FAILED on a later proof of refusal", all(is(payonce.StateDeclined), in(payonce.Cancelled)), payonce.Failed},
	{"a decline proves death past dead_at by the channel's date, nothing in flight",
		all(is(payonce.StateDeclined), live, scene.pastDeath), payonce.Failed},
	{"a decline on an object in the payer's hands", all(is(payonce.StateDeclined), live, handedOut), payonce.Pending},
	{"a decline else leaves the state until the object is closed", is(payonce.StateDeclined), ""},

	{"absence is asked again when anything happened since", all(is(payonce.StateAbsent), not(fresh)), ""},
	{"absence during a call proves nothing", all(is(payonce.StateAbsent), in(payonce.Processing)), ""},
	{"absence that proves death, a decline is on the books",
		all(is(payonce.StateAbsent), live, declined, func(s scene) bool { return s.pastDeath() || noOneHas(s) }), payonce.Failed},
	{"absence past dead_at by the channel's date, nothing in flight", all(is(payonce.StateAbsent), live, scene.pastDeath), payonce.Cancelled},
	{"absence where nobody was given the only key", all(is(payonce.StateAbsent), live, noOneHas), payonce.Cancelled},
	{"absence alone", is(payonce.StateAbsent), ""},

	{"a refusal counts while its permit is the last one", all(is(payonce.StateRefused), not(counts)), ""},
	{"nothing can be refused that was not sent", all(is(payonce.StateRefused), in(payonce.Created)), ""},
	{"CANCELLED becomes FAILED when nothing else was sent", all(is(payonce.StateRefused), in(payonce.Cancelled), harmless), payonce.Failed},
	{"an end stays", all(is(payonce.StateRefused), not(live)), ""},
	{"a refused confirm beside another send", all(is(payonce.StateRefused), hasObject, in(payonce.Processing), not(harmless)), payonce.Unknown},
	{"a refused confirm: the object is closed first", all(is(payonce.StateRefused), hasObject), ""},
	{"refused, and every permit ended without effect", all(is(payonce.StateRefused), harmless, not(seen)), payonce.Failed},
	{"refused, and an earlier send may have an effect", all(is(payonce.StateRefused), in(payonce.Processing)), payonce.Unknown},
	{"refused otherwise", is(payonce.StateRefused), ""},

	{"not sent counts only under the fence of its call", all(is(payonce.StateNotSent), not(ownFence)), ""},
	{"not sent ends only a call", all(is(payonce.StateNotSent), not(in(payonce.Processing))), ""},
	{"no byte left, but something was learned since: the channel is asked", all(is(payonce.StateNotSent), not(fresh)), payonce.Unknown},
	{"no byte left, and no other send can have an effect", all(is(payonce.StateNotSent), harmless, unseen), payonce.Created},
	{"no byte left, but another send may have an effect", is(payonce.StateNotSent), payonce.Unknown},

	{"nothing was sent, but a decline is on the books: the object is closed first", all(is(payonce.StateNeverSent), declined), ""},
	{"our books prove that nothing was sent", all(is(payonce.StateNeverSent), live, harmless, not(in(payonce.Pending)), unseen), payonce.Cancelled},
}

// expect returns what has to become of the scene's payment, and why.
func (s scene) expect() (payonce.PaymentStatus, string) {
	for _, r := range rules {
		if r.when(s) {
			if r.to == "" {
				return s.from, r.name
			}
			return r.to, r.name
		}
	}
	return s.from, "nothing is said"
}

// build makes the scene's order and payment and the fact.
func (s scene) build() (*payonce.Aggregate, *payonce.Payment, payonce.Fact) {
	policy, amount := payonce.PolicySingle, payonce.Amount(100)
	if s.split {
		policy, amount = payonce.PolicySplit, 200
	}
	a := newOrder(policy, amount)
	a.Order.Status = s.order
	part := ""
	if s.split {
		part = "b"
	}
	p := newPayment(a, 1, part, 100)
	p.Status, p.Superseded, p.HandedOut, p.Seen = s.from, s.superseded, s.handedOut, s.seen
	p.Fence, p.Version, p.Declined = 5, 7, s.declined
	given := t0.Add(-2 * testWindow)
	if s.inFlight {
		given = t0.Add(-testWindow / 2)
	}
	for i, end := range s.permits {
		p.Permits = append(p.Permits, payonce.Permit{No: i + 1, Fence: int64(i + 2), GivenAt: given, End: end})
		p.Accepted = p.Accepted || end == payonce.EndAccepted
	}
	if s.prepared {
		p.ObjectID, p.Prepares, p.Seen = "obj", 1, true
	}
	if !s.live() {
		p.EvidenceID = "evd_old"
	}
	a.Payments = append(a.Payments, p)
	if p.LiveSlot() != "" {
		a.Order.Reserved = p.Amount
	}
	switch {
	case s.order == payonce.OrderPartiallyPaid:
		pays(a, 2, "a", 100)
	case s.order == payonce.OrderPaid && s.from != payonce.Succeeded:
		pays(a, 2, part, a.Order.Amount)
	}
	if s.from == payonce.Succeeded {
		a.Charges = append(a.Charges, &payonce.Charge{ID: "chg_0", PaymentID: p.ID, OrderID: a.Order.ID, Account: p.Account,
			PaymentRef: "ref-0", Amount: p.Amount, Currency: p.Currency, Kind: payonce.ChargeSurplus, EvidenceID: "evd_old"})
		p.ChargeCount, a.Order.AmountSurplus = 1, p.Amount
	}
	f := said(p, s.kind, s.source)
	f.Permit, f.OnlyByAction = s.permit, s.onlyByKey
	if s.mismatch {
		f.Amount--
	}
	if s.side {
		f.Object = "other"
	}
	if s.oldFence {
		f.Fence--
	}
	if s.oldVer {
		f.Version--
	}
	if s.dated {
		f.ServerDate = p.DeadAt.Add(testMargin)
		if s.past {
			f.ServerDate = f.ServerDate.Add(time.Second)
		}
	}
	return a, p, f
}

// pays adds another payment that pays the order or part.
func pays(a *payonce.Aggregate, seq int, part string, amount payonce.Amount) {
	q := newPayment(a, seq, part, amount)
	q.Status, q.Effective, q.EvidenceID, q.Fence, q.Version, q.ChargeCount = payonce.Succeeded, true, "evd_q", 2, 2, 1
	a.Payments = append(a.Payments, q)
	a.Charges = append(a.Charges, &payonce.Charge{ID: "chg_q", PaymentID: q.ID, OrderID: a.Order.ID, Account: q.Account,
		PaymentRef: "ref-q", Amount: amount, Currency: q.Currency, Kind: payonce.ChargeEffective, EvidenceID: "evd_q"})
	a.Order.AmountPaid += amount
}
