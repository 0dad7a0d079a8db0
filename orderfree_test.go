package payonce_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/payonce/payonce"
)

// world makes an order with one to three attempts that were sent, from drawn
// data alone, so that it can be made twice. Older attempts of a part have ended.
type world struct {
	split  bool
	starts []start
}

type start struct {
	status   payonce.PaymentStatus // of the newest of a part; the others are CANCELLED
	prepared bool
	action   bool // its action was handed out
	declined bool // a try failed before
}

func drawWorld(t *rapid.T) world {
	w := world{split: rapid.Bool().Draw(t, "split")}
	for range rapid.IntRange(1, 3).Draw(t, "payments") {
		w.starts = append(w.starts, start{
			status: rapid.SampledFrom([]payonce.PaymentStatus{payonce.Processing, payonce.Unknown, payonce.Pending, payonce.Cancelled,
				payonce.Failed}).Draw(t, "status"),
			prepared: rapid.Bool().Draw(t, "prepared"),
			action:   rapid.Bool().Draw(t, "action"),
			declined: rapid.Bool().Draw(t, "declined"),
		})
	}
	return w
}

func (w world) build() *payonce.Aggregate {
	a := newOrder(payonce.PolicySingle, 100)
	if w.split {
		a = newOrder(payonce.PolicySplit, 250) // three shares of 100 do not fit
	}
	for i, s := range w.starts {
		part := ""
		if w.split {
			part = []string{"a", "b", "a"}[i]
		}
		if old := a.Live(part); old != nil {
			apply(a, old, payonce.StateDead)
		}
		p := newPayment(a, i+1, part, 100)
		must(a.AddPayment(p))
		if s.prepared {
			must(a.Prepare(p, lease()))
			a.StoreObject(p, "obj-"+p.ID, "")
		}
		permit(a, p)
		w.bring(a, p, s)
	}
	return a
}

// bring brings a sent payment to the state that was drawn.
func (w world) bring(a *payonce.Aggregate, p *payonce.Payment, s start) {
	if s.action {
		f := said(p, payonce.StateWaiting, "begin")
		f.Action = &payonce.Action{Type: "qr_code", QRCode: "qr"}
		a.Apply(p, f)
	}
	if s.declined {
		apply(a, p, payonce.StateDeclined)
	}
	switch s.status {
	case payonce.Unknown:
		a.Claim(p, lease(), "lease-over")
	case payonce.Pending:
		apply(a, p, payonce.StateWaiting)
	case payonce.Cancelled:
		apply(a, p, payonce.StateDead)
	case payonce.Failed:
		apply(a, p, payonce.StateDeclined)
		apply(a, p, payonce.StateDead)
	}
}

func apply(a *payonce.Aggregate, p *payonce.Payment, kind payonce.FactKind) {
	a.Apply(p, said(p, kind, "query"))
}

// word is one positive statement about payment number i, without a fence.
type word struct {
	payment int
	kind    payonce.FactKind
	variant int // another success, another amount, another object
}

func (w word) String() string { return fmt.Sprintf("%s/%d of %d", w.kind, w.variant, w.payment+1) }

var positive = []payonce.FactKind{payonce.StateSettled, payonce.StateSettled, payonce.StateDead, payonce.StateDeclined,
	payonce.StateWaiting, payonce.StateUnconfirmed}

func drawWords(t *rapid.T, payments int) []word {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) word {
		return word{rapid.IntRange(0, payments-1).Draw(t, "of"), rapid.SampledFrom(positive).Draw(t, "kind"), rapid.IntRange(0, 5).Draw(t, "variant")}
	}), 1, 7).Draw(t, "facts")
}

// fact makes the statement. Variants of settled: 0 and 1 two successes, 2 one of
// another amount, 3 the first again with another amount, 4 another object's, 5 of
// another account. Of the others: 4 names another object.
func (w word) fact(p *payonce.Payment) payonce.Fact {
	f := said(p, w.kind, "notice")
	f.Fence, f.Version = 0, 0
	f.EvidenceID = "evd-" + w.String()
	if w.variant == 4 && p.ObjectID != "" {
		f.Object = "side"
	}
	if w.kind != payonce.StateSettled {
		return f
	}
	f.PaymentRef = fmt.Sprintf("ref-%d-%d", p.Sequence, w.variant)
	switch w.variant {
	case 2:
		f.Amount++
	case 3:
		f.PaymentRef, f.Amount = fmt.Sprintf("ref-%d-0", p.Sequence), f.Amount+2
	case 5:
		f.Account = "foreign"
	}
	return f
}

// play applies the statements in order, each as often as it stands there.
func play(t *rapid.T, w world, words []word) *payonce.Aggregate {
	a := w.build()
	for _, word := range words {
		p := a.Payments[word.payment]
		a.Apply(p, word.fact(p))
		if bad := broken(a); bad != "" {
			t.Fatalf("after %s: %s", word, bad)
		}
	}
	return a
}

// outcome is what the design says is a function of the set of facts: states and
// charges. Which success pays may depend on the first commit.
func outcome(a *payonce.Aggregate) string {
	var lines []string
	for _, p := range a.Payments {
		lines = append(lines, fmt.Sprintf("%s %s", p.ID, p.Status))
	}
	for _, c := range a.Charges {
		lines = append(lines, fmt.Sprintf("%s %s %s %d %s mismatch=%t", c.PaymentID, c.Account, c.PaymentRef, c.Amount, c.Currency, c.Kind == payonce.ChargeMismatch))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestR04_StatesAndChargesAreFunctionsOfTheSetOfFacts is invariant 8: up to seven
// positive facts about one to three payments, in any order and multiplicity, end
// in the same states and charges, and each order's sums agree with its choice.
func TestR04_StatesAndChargesAreFunctionsOfTheSetOfFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		words := drawWords(t, len(w.starts))
		again := append(slices.Clone(words), rapid.SliceOfN(rapid.SampledFrom(words), 0, 4).Draw(t, "repeated")...)
		other := rapid.Permutation(again).Draw(t, "order")
		first, second := play(t, w, words), play(t, w, other)
		if outcome(first) != outcome(second) {
			t.Fatalf("%v\n%s\n\n%v\n%s", words, outcome(first), other, outcome(second))
		}
		if paidAtAll(first) != paidAtAll(second) && !w.split {
			t.Fatalf("%v pays and %v does not", words, other)
		}
	})
}

func paidAtAll(a *payonce.Aggregate) bool { return a.Order.AmountPaid > 0 }
