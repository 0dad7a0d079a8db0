package payonce_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/payonce/payonce"
)

var (
	states = []payonce.PaymentStatus{payonce.Created, payonce.Processing, payonce.Pending, payonce.Unknown,
		payonce.Succeeded, payonce.Failed, payonce.Cancelled}
	kinds = []payonce.FactKind{payonce.StateUnknown, payonce.StateSettled, payonce.StateDead, payonce.StateDeclined,
		payonce.StateWaiting, payonce.StateUnconfirmed, payonce.StateAbsent, payonce.StateRefused, payonce.StateNotSent,
		payonce.StateNeverSent}
	factSources = []string{"prepare", "begin", "query", "close", "notice", "engine"}
	books       = [][]payonce.PermitEnd{
		nil,
		{payonce.EndOpen},
		{payonce.EndRefused},
		{payonce.EndNotSent},
		{payonce.EndAccepted},
		{payonce.EndOpen, payonce.EndOpen},
		{payonce.EndRefused, payonce.EndOpen},
		{payonce.EndNotSent, payonce.EndOpen},
		{payonce.EndAccepted, payonce.EndOpen},
		{payonce.EndOpen, payonce.EndRefused},
	}
	bools = []bool{false, true}
)

// places are the orders and roles in which a payment can be; others cannot be
// stored: no payment is live in a CLOSED order, none holds a slot beside the
// success that pays.
func places(from payonce.PaymentStatus) []scene {
	s := scene{from: from}
	var out []scene
	add := func(o payonce.OrderStatus, split, superseded bool) {
		c := s
		c.order, c.split, c.superseded = o, split, superseded
		out = append(out, c)
	}
	add(payonce.OrderOpen, false, false)
	add(payonce.OrderClosing, false, false)
	add(payonce.OrderPartiallyPaid, true, false)
	if from == payonce.Succeeded {
		add(payonce.OrderClosed, false, false)
		return out
	}
	add(payonce.OrderPaid, false, true)
	if !s.live() {
		add(payonce.OrderPaid, false, false)
		add(payonce.OrderClosed, false, false)
	}
	return out
}

// eachScene calls do for every combination from a state that can be.
func eachScene(from payonce.PaymentStatus, do func(scene)) {
	for _, s := range places(from) {
		for _, kind := range kinds {
			s.kind = kind
			eachBook(s, do)
		}
	}
}

func eachBook(s scene, do func(scene)) {
	for _, book := range books {
		for bits := range 8 {
			s.permits, s.handedOut, s.prepared, s.seen = book, bits&1 != 0, bits&2 != 0, bits&2 != 0 || bits&4 != 0
			if bits&2 != 0 && bits&4 != 0 {
				continue // a stored object has been seen
			}
			for s.permit = 0; s.permit <= len(book); s.permit++ {
				eachFact(s, do)
				if s.declined = s.seen && declineDecides(s.kind); s.declined {
					eachFact(s, do)
				}
				s.declined = false
			}
		}
	}
}

// declineDecides: what an earlier decline makes of the fact. Who declined has shown
// the number.
func declineDecides(k payonce.FactKind) bool {
	return k == payonce.StateDead || k == payonce.StateAbsent || k == payonce.StateNeverSent
}

// eachFact takes every source where the source decides; elsewhere the sources
// take turns, so that each is met in each state.
func eachFact(s scene, do func(scene)) {
	decides := s.kind == payonce.StateRefused || s.kind == payonce.StateNotSent || s.kind == payonce.StateUnknown
	for i, source := range factSources {
		for bits := range 4 {
			if !decides && (i+bits+s.permit+len(s.permits))%len(factSources) != 0 {
				continue
			}
			s.source, s.oldFence, s.oldVer = source, bits&1 != 0, bits&2 != 0
			eachDetail(s, do)
		}
	}
}

func eachDetail(s scene, do func(scene)) {
	for _, s.side = range bools {
		if s.side && !s.prepared {
			continue // one object per number
		}
		switch s.kind {
		case payonce.StateSettled:
			for _, s.mismatch = range bools {
				do(s)
			}
		case payonce.StateDeclined, payonce.StateAbsent, payonce.StateRefused:
			for bits := range 9 {
				s.dated, s.past, s.inFlight, s.onlyByKey = bits > 0, bits&1 != 0, bits&2 != 0, bits&4 != 0
				do(s)
			}
		default:
			do(s)
		}
	}
}

// TestR03_EveryTransitionIsTheDesigns compares Apply with the rules of the
// oracle in every combination of state, fact, source, fence, version, permit,
// object, order and proof, and checks the invariants after each.
func TestR03_EveryTransitionIsTheDesigns(t *testing.T) {
	var mu sync.Mutex
	spoke := map[string]int{}
	t.Run("from", func(t *testing.T) {
		for _, from := range states {
			t.Run(string(from), func(t *testing.T) {
				t.Parallel()
				mine := map[string]int{}
				total := 0
				eachScene(from, func(s scene) {
					if total++; (testing.Short() || raceEnabled) && total%13 != 0 {
						return
					}
					mine[compare(t, s)]++
				})
				t.Logf("%d combinations", total)
				mu.Lock()
				defer mu.Unlock()
				for why, n := range mine {
					spoke[why] += n
				}
			})
		}
	})
	for _, r := range rules {
		if spoke[r.name] == 0 {
			t.Errorf("no scene met the rule %q", r.name)
		}
	}
}

// compare plays one scene and returns the rule that decided it.
func compare(t *testing.T, s scene) string {
	t.Helper()
	a, p, f := s.build()
	permits, version := len(p.Permits), p.Version
	want, why := s.expect()
	v := a.Apply(p, f)
	if p.Status != want {
		t.Fatalf("%s by %s from %s: became %s, must be %s: %s\n%+v", f.Kind, s.source, s.from, p.Status, want, why, s)
	}
	if v.Changed != (p.Version != version) || len(p.Permits) != permits {
		t.Fatalf("a change is not told, or a fact gave a permit: %+v", s)
	}
	lawful(t, s, a, p, f)
	if p.Version == version {
		return why // nothing was written
	}
	if bad := broken(a); bad != "" {
		t.Fatalf("%s by %s from %s to %s: %s\n%+v", f.Kind, s.source, s.from, p.Status, bad, s)
	}
	return why
}

// lawful holds laws that need no oracle: what must never happen at all.
func lawful(t *testing.T, s scene, a *payonce.Aggregate, p *payonce.Payment, f payonce.Fact) {
	t.Helper()
	fail := func(law string) {
		t.Helper()
		t.Fatalf("%s: %s by %s: %s → %s\n%+v", law, f.Kind, f.Source, s.from, p.Status, s)
	}
	changed := p.Status != s.from
	// What names another object, or was not sent by begin or prepare, only ends
	// the call that its asker holds.
	negative := (f.Kind == payonce.StateAbsent || f.Kind == payonce.StateNotSent && p.Status != payonce.Unknown) && !noWord(s)
	evidence := f.EvidenceID
	if f.Kind == payonce.StateNeverSent && changed && !p.Status.Live() {
		// The books are the evidence: they give a proof of their own.
		evidence = ""
		if len(a.Proofs) == 1 && a.Proofs[0].PaymentID == p.ID && a.Proofs[0].Cause == f.Reason {
			evidence = a.Proofs[0].ID
		}
	} else if len(a.Proofs) > 0 {
		fail("a proof of the books that nobody asked for")
	}
	switch {
	case s.from == payonce.Succeeded && changed:
		fail("SUCCEEDED was left")
	case !s.live() && changed && p.Status != payonce.Succeeded && !(s.from == payonce.Cancelled && p.Status == payonce.Failed):
		fail("an end was left without money")
	case changed && !p.Status.Live() && (evidence == "" || p.EvidenceID != evidence):
		fail("a final state without the evidence that made it")
	case changed && negative && s.oldVer:
		fail("negative knowledge under an old version changed a state")
	case changed && f.Kind == payonce.StateNotSent && s.oldFence:
		fail("not-sent under an old fence changed a state")
	case changed && s.from == payonce.Unknown && f.Kind == payonce.StateUnknown:
		fail("UNKNOWN decayed without knowledge")
	case p.Status == payonce.Processing && s.from != payonce.Processing:
		fail("a fact permitted a call")
	case changed && !p.Status.Live() && f.Kind == payonce.StateAbsent && s.handedOut && !(s.dated && s.past):
		fail("absence alone ended what was handed out")
	case p.Superseded != s.superseded:
		fail("its own fact superseded a payment")
	case p.Status == payonce.Succeeded && s.from != payonce.Succeeded && f.Kind != payonce.StateSettled:
		fail("success without money")
	}
	if f.Kind == payonce.StateSettled && len(chargesOf(a, p)) == 0 {
		fail("money without a charge")
	}
	if f.Kind != payonce.StateSettled && s.from != payonce.Succeeded && len(chargesOf(a, p)) != 0 {
		fail("a charge without money")
	}
	if s.from != payonce.Succeeded && p.Status == payonce.Succeeded {
		pays := s.order == payonce.OrderOpen || s.order == payonce.OrderClosing || s.order == payonce.OrderPartiallyPaid
		if p.Effective != pays {
			fail(fmt.Sprintf("effective is %t in an order that was %s", p.Effective, s.order))
		}
	}
}

func chargesOf(a *payonce.Aggregate, p *payonce.Payment) (out []*payonce.Charge) {
	for _, c := range a.Charges {
		if c.PaymentID == p.ID {
			out = append(out, c)
		}
	}
	return out
}
