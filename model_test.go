package payonce_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/payonce/payonce"
)

// A machine plays random operations on one order and remembers, apart from the
// code under test, what may never change.
type machine struct {
	*rapid.T
	a      *payonce.Aggregate
	parts  []string
	frozen map[string]string // what of a payment never changes
	status map[string]payonce.PaymentStatus
	flags  map[string][]bool       // what only ever becomes true
	resent map[string]map[int]bool // permits that repeat a send which may have been lost
	asked  map[string]payonce.Fact // the last question about each payment
	given  map[string]int          // rights, counted, so that the play is known to meet them
	closed bool
	seq    int
	refs   int
}

func newMachine(t *rapid.T, given map[string]int) *machine {
	m := &machine{T: t, parts: []string{""}, frozen: map[string]string{}, status: map[string]payonce.PaymentStatus{},
		flags: map[string][]bool{}, resent: map[string]map[int]bool{}, asked: map[string]payonce.Fact{}, given: given}
	policy := payonce.PolicySingle
	if rapid.Bool().Draw(t, "split") {
		policy, m.parts = payonce.PolicySplit, []string{"a", "b", "c"}
	}
	m.a = newOrder(policy, 300)
	if rapid.Bool().Draw(t, "expires") {
		m.a.Order.ExpiresAt = t0.Add(time.Hour)
	}
	return m
}

func (m *machine) any() *payonce.Payment {
	if len(m.a.Payments) == 0 {
		return nil
	}
	return rapid.SampledFrom(m.a.Payments).Draw(m.T, "payment")
}

func (m *machine) add() {
	amount := m.a.Order.Amount
	part := rapid.SampledFrom(m.parts).Draw(m.T, "part")
	if m.a.Order.Policy == payonce.PolicySplit {
		amount = payonce.Amount(rapid.IntRange(50, 250).Draw(m.T, "share"))
	}
	p := newPayment(m.a, m.seq+1, part, amount)
	if rapid.IntRange(0, 3).Draw(m.T, "signed") == 0 {
		p.Status = payonce.Pending
	}
	o := m.a.Order
	free := m.a.Live(part) == nil && m.a.Effective(part) == nil && o.Reserved+o.AmountPaid+amount <= o.Amount &&
		(o.Status == payonce.OrderOpen || o.Status == payonce.OrderPartiallyPaid) && (o.ExpiresAt.IsZero() || m.a.Now.Before(o.ExpiresAt))
	err := m.a.AddPayment(p)
	if (err == nil) != free {
		m.Fatalf("AddPayment: %v, though free is %t", err, free)
	}
	if err == nil {
		m.seq++
		m.frozen[p.ID] = frozen(p)
	}
}

func (m *machine) fact(p *payonce.Payment) payonce.Fact {
	kind := rapid.SampledFrom(kinds).Draw(m.T, "kind")
	f := said(p, kind, rapid.SampledFrom(factSources).Draw(m.T, "source"))
	f.Fence -= int64(rapid.IntRange(0, 1).Draw(m.T, "old fence"))
	f.Version -= int64(rapid.IntRange(0, 1).Draw(m.T, "old version"))
	f.Permit = rapid.IntRange(0, len(p.Permits)).Draw(m.T, "permit")
	f.OnlyByAction = rapid.Bool().Draw(m.T, "only by action")
	switch rapid.IntRange(0, 5).Draw(m.T, "object") {
	case 0:
		f.Object = "side"
	case 1:
		f.Number = "foreign"
	}
	if rapid.Bool().Draw(m.T, "dated") {
		f.ServerDate = p.DeadAt.Add(time.Duration(rapid.IntRange(-5, 5).Draw(m.T, "minutes")) * time.Minute)
	}
	if kind == payonce.StateSettled {
		m.refs++
		f.PaymentRef = fmt.Sprintf("ref-%d", rapid.IntRange(max(m.refs-3, 0), m.refs).Draw(m.T, "ref"))
		f.Amount -= payonce.Amount(max(rapid.IntRange(-3, 2).Draw(m.T, "less"), 0))
	}
	if kind == payonce.StateWaiting && rapid.Bool().Draw(m.T, "action") {
		f.Action = &payonce.Action{Type: "qr_code", QRCode: "qr"}
	}
	f.EvidenceID = fmt.Sprintf("said_%d", m.refs)
	return f
}

func (m *machine) apply(p *payonce.Payment) {
	f := m.fact(p)
	superseded, handed := p.Superseded || p.GivenUp, p.Action != nil
	open := m.a.Order.Chargeable(m.a.Now)
	money := f.Kind == payonce.StateSettled && f.Number == p.Number
	known := slices.ContainsFunc(m.a.Charges, func(c *payonce.Charge) bool { return c.PaymentRef == f.PaymentRef })
	n := len(m.a.Charges)
	m.a.Apply(p, f)
	if money && !known && len(m.a.Charges) != n+1 {
		m.Fatalf("a success left no charge: %+v", f)
	}
	if !money && len(m.a.Charges) != n {
		m.Fatalf("a charge without money: %+v", f)
	}
	if !handed && p.Action != nil && (superseded || !open || p.Status != payonce.Pending) {
		m.Fatalf("an action was handed out by a payment that may not show it")
	}
}

// step plays one operation.
func (m *machine) step() {
	op := rapid.SampledFrom([]string{"add", "add", "apply", "apply", "apply", "apply", "permit", "permit", "prepare", "object",
		"claim", "claim", "ask", "resend", "resend", "lost", "caller", "give up", "unsent", "close", "close order", "amend", "time"}).Draw(m.T, "op")
	p := m.any()
	if p == nil {
		op = "add"
	}
	switch op {
	case "add":
		m.add()
	case "apply":
		m.apply(p)
	case "permit":
		m.permit(p)
	case "prepare":
		m.prepare(p)
	case "object":
		m.object(p)
	case "claim":
		m.claim(p)
	case "ask":
		m.asked[p.ID] = m.question(p)
	case "resend":
		m.resend(p)
	case "lost":
		m.permit(p)
		m.claim(p)
		m.resend(p)
	case "caller":
		p.CallerAt = m.a.Now
	case "give up":
		m.giveUp(p)
	case "unsent":
		m.unsent(p)
	case "amend":
		m.amend()
	case "close":
		m.close(p)
	case "close order":
		if rapid.IntRange(0, 3).Draw(m.T, "really") == 0 {
			m.a.CloseOrder("api")
			m.closed = true
		}
	case "time":
		m.a.Now = m.a.Now.Add(time.Duration(rapid.IntRange(1, 20).Draw(m.T, "minutes")) * time.Minute)
	}
	m.check(op)
}

// check holds every invariant after a step.
func (m *machine) check(op string) {
	if bad := broken(m.a); bad != "" {
		m.Fatalf("after %s: %s", op, bad)
	}
	for _, p := range m.a.Payments {
		if frozen(p) != m.frozen[p.ID] {
			m.Fatalf("after %s: what never changes changed: %s", op, frozen(p))
		}
		if from, ok := m.status[p.ID]; ok && from != p.Status && !slices.Contains(transitions[from], p.Status) {
			m.Fatalf("%s: %s → %s is no transition", op, from, p.Status)
		}
		m.status[p.ID] = p.Status
		m.checkRights(op, p)
	}
	if s := m.a.Order.Status; m.closed && (s == payonce.OrderOpen || s == payonce.OrderPartiallyPaid) {
		m.Fatalf("after %s: an order that was closed is %s again", op, s)
	}
}

// frozen is what invariant 4 says never changes.
func frozen(p *payonce.Payment) string {
	return fmt.Sprint(p.ID, p.OrderID, p.Sequence, p.Part, p.Number, p.Amount, p.Currency, p.Account, p.Channel, p.Method, string(p.Request), p.Inputs)
}

// transitions is the table of docs/states.md: each state and what may follow.
var transitions = map[payonce.PaymentStatus][]payonce.PaymentStatus{
	payonce.Created:    {payonce.Processing, payonce.Pending, payonce.Unknown, payonce.Succeeded, payonce.Failed, payonce.Cancelled},
	payonce.Processing: {payonce.Created, payonce.Pending, payonce.Unknown, payonce.Succeeded, payonce.Failed, payonce.Cancelled},
	payonce.Pending:    {payonce.Unknown, payonce.Succeeded, payonce.Failed, payonce.Cancelled},
	payonce.Unknown:    {payonce.Processing, payonce.Pending, payonce.Succeeded, payonce.Failed, payonce.Cancelled},
	payonce.Succeeded:  {},
	payonce.Failed:     {payonce.Succeeded},
	payonce.Cancelled:  {payonce.Failed, payonce.Succeeded},
}
