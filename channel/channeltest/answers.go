package channeltest

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// compose: the same intent makes the same bytes, in every time zone, without a
// request; what the channel would refuse is refused with the member's name.
func (r *runner) compose(t *testing.T) {
	b := r.bench(t)
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 8*3600), time.FixedZone("west", -8*3600)} {
		in := r.m.Intent
		in.DeadAt = in.DeadAt.In(zone)
		got, err := b.adapter.Compose(in)
		if err != nil || !bytes.Equal(got, b.payment.Request) {
			t.Errorf("Compose in %s differs from the first (%v)", zone, err)
		}
	}
	for _, bad := range r.m.Bad {
		t.Run(bad.Name, func(t *testing.T) {
			in := r.m.Intent
			bad.Change(&in)
			got, err := b.adapter.Compose(in)
			var e *payonce.Error
			if got != nil || !errors.As(err, &e) || e.Code != payonce.CodeInvalidRequest {
				t.Fatalf("Compose = %d bytes, %v; want an invalid-request error", len(got), err)
			}
			if len(e.Fields) == 0 || e.Fields[0].Pointer != bad.Pointer {
				t.Errorf("the error names %v, want %s", e.Fields, bad.Pointer)
			}
		})
	}
	b.arrived(0)
	caps, ok := b.adapter.Methods()[r.m.Intent.Method]
	if !ok {
		t.Fatal("Methods does not list the method")
	}
	if _, prep := b.adapter.(channel.Preparer); caps.Prepared && !prep {
		t.Error("Prepared without a Preparer")
	}
	if caps.Prepared != (len(r.m.Says[Prepare]) > 0) {
		t.Error("Prepared and the suite's steps disagree")
	}
}

// statements: every statement that the channel can make is understood, and
// settled carries all that the engine compares.
func (r *runner) statements(t *testing.T) {
	for _, s := range r.steps() {
		for _, kind := range r.m.Says[s] {
			t.Run(string(s)+"/"+kind.String(), func(t *testing.T) {
				b := r.bench(t)
				b.wire.Answer(b.say(s, b.statement(kind)))
				a := b.call(s, 1)
				reqs := b.arrived(1)
				if a.Kind != kind {
					t.Fatalf("%s = %s (%s, %v), want %s", s, a.Kind, a.Reason, a.Err, kind)
				}
				if r.m.Number != nil && len(reqs) == 1 {
					if n := r.m.Number(reqs[0]); n != b.payment.Number && (n == "" || n != b.m.Object) {
						t.Errorf("the request names %q", n)
					}
				}
				if a.Account != b.adapter.Account() {
					t.Errorf("account is %q", a.Account)
				}
				if a.Number != b.payment.Number && (a.Number != "" || a.Object == "") {
					t.Errorf("the answer names number %q, object %q", a.Number, a.Object)
				}
				if kind == payonce.StateSettled && (a.Amount != b.payment.Amount || a.Currency != b.payment.Currency || a.PaymentRef == "") {
					t.Errorf("settled %d %s ref %q, want %d %s", a.Amount, a.Currency, a.PaymentRef, b.payment.Amount, b.payment.Currency)
				}
				if len(a.Raw) == 0 {
					t.Error("no evidence")
				}
			})
		}
	}
}

// codes: every documented code has its class, and what no table has is unknown.
func (r *runner) codes(t *testing.T) {
	if len(r.m.Codes) == 0 || len(r.m.Unlisted) == 0 {
		t.Fatal("the suite declares no codes or no unlisted ones")
	}
	cases := slices.Clone(r.m.Codes)
	for _, c := range r.m.Unlisted {
		c.Want = payonce.StateUnknown
		cases = append(cases, c)
	}
	for _, c := range cases {
		t.Run(string(c.Step)+"/"+c.Name, func(t *testing.T) {
			b := r.bench(t)
			b.wire.Answer(c.Reply)
			a := b.call(c.Step, 1)
			b.arrived(1)
			if a.Kind != c.Want {
				t.Errorf("%s of %s = %s (%s, %v), want %s", c.Step, c.Name, a.Kind, a.Reason, a.Err, c.Want)
			}
			if c.Check != nil {
				c.Check(t, a)
			}
		})
	}
}

// asIs: an answer about something else is reported, not repaired: the engine
// compares.
func (r *runner) asIs(t *testing.T) {
	for _, s := range r.steps() {
		if !slices.Contains(r.m.Says[s], payonce.StateSettled) {
			continue
		}
		settle := func(t *testing.T, change func(*Statement)) (*bench, Statement, channel.Answer) {
			b := r.bench(t)
			st := b.statement(payonce.StateSettled)
			change(&st)
			b.wire.Answer(b.say(s, st))
			a := b.call(s, 1)
			b.arrived(1)
			return b, st, a
		}
		t.Run(string(s)+"/A12_amount", func(t *testing.T) {
			b, st, a := settle(t, func(st *Statement) { st.Amount -= 100 })
			if a.Kind != payonce.StateSettled || a.Amount != st.Amount || a.Amount == b.payment.Amount {
				t.Errorf("%s of %d, want settled of %d as stated", a.Kind, a.Amount, st.Amount)
			}
		})
		if !r.m.OneCurrency {
			t.Run(string(s)+"/A12_currency", func(t *testing.T) { r.otherCurrency(t, settle) })
		}
		t.Run(string(s)+"/number", func(t *testing.T) {
			b, st, a := settle(t, func(st *Statement) { st.Number = "0000000000000000000X" })
			if a.Kind == payonce.StateSettled && a.Number != st.Number || a.Number == b.payment.Number && a.Kind != payonce.StateUnknown {
				t.Errorf("%s about %q, want what the channel named (%q)", a.Kind, a.Number, st.Number)
			}
		})
		if !r.m.Foreign {
			continue
		}
		t.Run(string(s)+"/account", func(t *testing.T) {
			b, _, a := settle(t, func(st *Statement) { st.Foreign = true })
			if a.Kind != payonce.StateUnknown && a.Account == b.adapter.Account() {
				t.Errorf("%s for our own account, though the answer is another's", a.Kind)
			}
		})
	}
}

func (r *runner) otherCurrency(t *testing.T, settle func(*testing.T, func(*Statement)) (*bench, Statement, channel.Answer)) {
	_, st, a := settle(t, func(st *Statement) { st.Currency = "SEK" })
	if a.Kind != payonce.StateSettled || a.Currency != st.Currency {
		t.Errorf("%s in %s, want settled in %s as stated", a.Kind, a.Currency, st.Currency)
	}
}
