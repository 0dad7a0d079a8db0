package payonce_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/payonce/payonce"
)

// The rights of the random play: each is asked for on any payment, and given
// exactly where the test's own reading of the design gives it.

func (m *machine) prepare(p *payonce.Payment) {
	may, fence := mayBegin(m.a, p) && p.ObjectID == "", p.Fence
	switch err := m.a.Prepare(p, lease()); {
	case (err == nil) != may:
		m.Fatalf("prepare: %v, though %t: %+v", err, may, p)
	case may && (p.Fence <= fence || p.Status != payonce.Processing):
		m.Fatalf("prepared under an old fence: %+v", p)
	case may:
		m.given["prepare"]++
	}
}

func (m *machine) permit(p *payonce.Payment) {
	may, from := mayBegin(m.a, p) && (p.Prepares == 0 || p.ObjectID != ""), *p
	got, err := m.a.Permit(p, lease())
	if (err == nil) != may {
		m.Fatalf("permit: %v, though %t, in order %s: %+v", err, may, m.a.Order.Status, from)
	}
	if may {
		isNext(m, &from, p, got)
		m.given["permit"]++
	}
}

func (m *machine) object(p *payonce.Payment) {
	before := p.ObjectID
	if p.Prepares > 0 && m.a.StoreObject(p, rapid.SampledFrom([]string{"obj", "late"}).Draw(m.T, "id"), "") && before != "" && p.ObjectID != before {
		m.Fatalf("the object changed")
	}
}

func (m *machine) claim(p *payonce.Payment) {
	fence := p.Fence
	if m.a.Claim(p, lease(), "lease-over"); p.Fence <= fence || p.Status == payonce.Processing {
		m.Fatalf("a claim left the old owner its rights")
	}
}

// question is an answer to a question about p as it now is. Half of them are what
// a repeat needs; the others miss it in one way or more.
func (m *machine) question(p *payonce.Payment) payonce.Fact {
	absent := rapid.SampledFrom([]payonce.FactKind{payonce.StateAbsent, payonce.StateUnconfirmed}).Draw(m.T, "answer")
	f := said(p, absent, "query")
	if rapid.Bool().Draw(m.T, "right") {
		return f
	}
	f.Kind = rapid.SampledFrom(append(slices.Clone(kinds), absent, absent, absent)).Draw(m.T, "kind")
	f.Source = rapid.SampledFrom(append(slices.Clone(factSources), "query", "query", "query")).Draw(m.T, "source")
	switch rapid.IntRange(0, 5).Draw(m.T, "of") {
	case 0:
		f.Number = "foreign"
	case 1:
		f.Account = "foreign"
	case 2:
		f.Object = "side"
	case 3:
		f.EvidenceID = ""
	}
	return f
}

// resend asks for a repeat with an answer of now or of some steps ago.
func (m *machine) resend(p *payonce.Payment) {
	f, ok := m.asked[p.ID]
	if !ok || rapid.Bool().Draw(m.T, "ask now") {
		f = m.question(p)
	}
	window := time.Duration(rapid.SampledFrom([]int{0, 60, 65, 70, 80, 24 * 60}).Draw(m.T, "window")) * time.Minute
	fresh, from := f.Version == p.Version, *p
	may := fresh && m.mayResend(p, f, window)
	got, err := m.a.Resend(p, lease(), f, fresh, window)
	if (err == nil) != may {
		m.Fatalf("resend: %v, though %t; window %s, fresh %t, %+v, order %s: %+v", err, may, window, fresh, f, m.a.Order.Status, from)
	}
	if may {
		isNext(m, &from, p, got)
		if m.resent[p.ID] == nil {
			m.resent[p.ID] = map[int]bool{}
		}
		m.resent[p.ID][got.No] = true
		m.given["resend"]++
	}
}

// mayResend is the design's condition for a repeat, judged by the test itself.
func (m *machine) mayResend(p *payonce.Payment, f payonce.Fact, window time.Duration) bool {
	answered := (f.Kind == payonce.StateAbsent || f.Kind == payonce.StateUnconfirmed) && f.Source == "query" && f.Fence == p.Fence
	ours := f.Number == p.Number && f.Account == p.Account && f.EvidenceID != "" && (f.Object == "" || f.Object == p.ObjectID)
	if f.Object != "" && p.ObjectID == "" && p.Prepares == 0 {
		ours = f.Number == p.Number && f.Account == p.Account && f.EvidenceID != "" // it has no object of its own
	}
	if !answered || !ours || p.Status != payonce.Unknown || len(p.Permits) == 0 || !takes(m.a, p) {
		return false
	}
	recognised := p.Permits[0].GivenAt.Add(window)
	return m.a.Now.Add(testSafety).Before(recognised) && m.a.Now.Before(p.CallerAt.Add(testMemory))
}

func (m *machine) close(p *payonce.Payment) {
	may, fence := p.Status.Live() && (p.Seen || p.ObjectID != ""), p.Fence
	switch err := m.a.Close(p, lease()); {
	case (err == nil) != may:
		m.Fatalf("close: %v, though %t: %+v", err, may, p)
	case may && (!p.GivenUp || p.Fence <= fence || p.CloseKey < 1):
		m.Fatalf("a close that left old rights: %+v", p)
	case may:
		m.given["close"]++
	}
}

func (m *machine) giveUp(p *payonce.Payment) {
	before := *p
	m.a.GiveUp(p)
	if p.GivenUp != (before.GivenUp || before.Status.Live()) || p.Status != before.Status || p.Fence != before.Fence {
		m.Fatalf("given up: %+v", p)
	}
	if p.GivenUp && !before.GivenUp {
		m.given["give up"]++
	}
}

func (m *machine) unsent(p *payonce.Payment) {
	may, n := p.Status.Live() && !p.Declined && unsent(p), len(m.a.Proofs)
	got := m.a.CancelUnsent(p, "never-sent")
	if got != may || len(m.a.Proofs)-n != map[bool]int{true: 1}[may] {
		m.Fatalf("ended as never sent: %t, though %t: %+v", got, may, p)
	}
	if may {
		m.given["unsent"]++
	}
}

func (m *machine) amend() {
	o, live := m.a.Order, slices.ContainsFunc(m.a.Payments, func(p *payonce.Payment) bool { return p.Status.Live() })
	inTime := o.ExpiresAt.IsZero() || m.a.Now.Before(o.ExpiresAt)
	may, before := o.Status == payonce.OrderOpen && inTime && o.AmountPaid == 0 && !live, o.Amount
	amount := payonce.Amount(rapid.SampledFrom([]int{100, 200, 300, 400}).Draw(m.T, "amount"))
	err := m.a.Amend(amount, "")
	if (err == nil) != may || err == nil && o.Amount != amount || err != nil && o.Amount != before {
		m.Fatalf("amend to %d: %v, though %t; it is %d", amount, err, may, o.Amount)
	}
	if may {
		m.given["amend"]++
	}
}

// checkRights: what was learned or decided stays; no permit stands beside a send
// that may have had an effect unless it was a repeat; the payer sees an action only
// where it may be shown.
func (m *machine) checkRights(op string, p *payonce.Payment) {
	flags := []bool{p.Accepted, p.Seen, p.HandedOut, p.Declined, p.Dead, p.GivenUp, p.Superseded}
	for i, was := range m.flags[p.ID] {
		if was && !flags[i] {
			m.Fatalf("after %s: what only becomes true ended: %v, was %v", op, flags, m.flags[p.ID])
		}
	}
	m.flags[p.ID] = flags
	if shown := m.a.Order.Shows(p, m.a.Now); (shown != nil) != mayShow(m.a.Order, p, m.a.Now) {
		m.Fatalf("after %s: shown is %v: %+v in %s", op, shown, p, m.a.Order.Status)
	}
	effect := false
	for _, permit := range p.Permits {
		if effect && !m.resent[p.ID][permit.No] {
			m.Fatalf("after %s: permit %d stands beside a send that may have had an effect: %+v", op, permit.No, p.Permits)
		}
		effect = effect || permit.End == payonce.EndOpen || permit.End == payonce.EndAccepted
	}
}
