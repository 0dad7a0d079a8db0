package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"
	"time"
)

const alipay = "alipay"

// qr is a request for a code that the payer scans. It costs 10.00 CNY.
func qr(no string) pay { return byAlipay(no, "qr") }

// page is a request for a form that the payer's browser sends.
func page(no string) pay { return byAlipay(no, "page") }

func byAlipay(no, method string) pay {
	return pay{order: no, currency: "CNY", extra: map[string]any{"channel": alipay, "method": method, "payer": map[string]any{}}}
}

// cardCNY is a card payment of an order that Alipay could pay too.
func cardCNY(no, card string) pay { return pay{order: no, currency: "CNY", card: card} }

// with is a request with further members.
func (p pay) with(name string, value any) pay {
	p.extra = maps.Clone(p.extra)
	if p.extra == nil {
		p.extra = map[string]any{}
	}
	p.extra[name] = value
	return p
}

// shown is what a payer is given to act on.
type shown struct {
	Type      string            `json:"type"`
	QRCode    string            `json:"qr_code"`
	URL       string            `json:"url"`
	Method    string            `json:"method"`
	Fields    map[string]string `json:"fields"`
	ExpiresAt *time.Time        `json:"expires_at"`
}

// shown is the action of the payment that the answer is or speaks of.
func (r resp) shown() shown {
	var v struct {
		Action  *shown `json:"action"`
		Payment *struct {
			Action shown `json:"action"`
		} `json:"payment"`
	}
	_ = json.Unmarshal(r.body, &v)
	switch {
	case v.Action != nil:
		return *v.Action
	case v.Payment != nil:
		return v.Payment.Action
	}
	return shown{}
}

// does plays the payer at any channel; more are further members of the call.
func (s *simulator) does(channel, number, outcome string, more map[string]any) resp {
	body := map[string]any{"channel": channel, "number": number, "outcome": outcome}
	maps.Copy(body, more)
	return s.do(request{method: "POST", path: "/_sim/pay", noAuth: true, body: body})
}

// acts is does for what has to work.
func (s *simulator) acts(t testing.TB, number, outcome string) {
	t.Helper()
	if r := s.does(alipay, number, outcome, nil); r.code != http.StatusOK {
		t.Fatalf("the payer cannot make %s %s: %s", number, outcome, r)
	}
}

func (s *simulator) scans(t testing.TB, number string)      { t.Helper(); s.acts(t, number, "scanned") }
func (s *simulator) paysAlipay(t testing.TB, number string) { t.Helper(); s.acts(t, number, "paid") }

// forces lets money arrive whatever the state of the number is.
func (s *simulator) forces(t testing.TB, number string) {
	t.Helper()
	if r := s.does(alipay, number, "paid", map[string]any{"force": true}); r.code != http.StatusOK {
		t.Fatalf("money that arrives anyway under %s: %s", number, r)
	}
}

// disturbs is a fault of any channel.
func (s *simulator) disturbs(t testing.TB, channel string, f fault) (remove func()) {
	t.Helper()
	f.Channel = channel
	r := s.do(request{method: "POST", path: "/_sim/faults", body: f, noAuth: true})
	var got struct {
		ID string `json:"id"`
	}
	if r.err != nil || r.code != http.StatusCreated || json.Unmarshal(r.body, &got) != nil {
		t.Fatalf("fault %+v: %s", f, r)
	}
	return func() { s.do(request{method: "DELETE", path: "/_sim/faults/" + got.ID, noAuth: true}) }
}

// turn sets a switch of a channel.
func (s *simulator) turn(channel, name, value string) error {
	r := s.do(request{method: "POST", path: "/_sim/switches", noAuth: true, body: map[string]string{"channel": channel, "switch": name, "value": value}})
	if r.err != nil || r.code != http.StatusOK {
		return r.asError()
	}
	return nil
}

type answerError string

func (e answerError) Error() string { return string(e) }

func (r resp) asError() error { return answerError(r.String()) }

// resends has the channel send all notices of a number again.
func (s *simulator) resends(t testing.TB, number string) {
	t.Helper()
	if r := s.do(request{method: "POST", path: "/_sim/notices/resend", body: map[string]string{"number": number}, noAuth: true}); r.code != http.StatusOK {
		t.Fatalf("resend: %s", r)
	}
}

// spoils aims a fault of Alipay at an order's first attempt.
func (w *world) spoils(t testing.TB, no, operation, name string, times int) (remove func()) {
	t.Helper()
	return w.sim.disturbs(t, alipay, fault{Operation: operation, Fault: name, Times: times, Number: w.number(no, 1)})
}

// mute keeps Alipay's notices of an order away, so that asking is the only way
// to know. unmute lets later ones and repetitions through.
func (w *world) mute(t testing.TB, no string) (unmute func()) {
	t.Helper()
	var ends []func()
	for seq := 1; seq <= 2; seq++ {
		ends = append(ends, w.sim.disturbs(t, alipay, fault{Operation: "notice", Fault: "drop", Times: always, Number: w.number(no, seq)}))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// code starts a payment that waits for a payer with a telephone.
func (w *world) code(t testing.TB, no string) payment {
	t.Helper()
	return w.waits(t, qr(no))
}

func (w *world) waits(t testing.TB, p pay) payment {
	t.Helper()
	r := w.pay(p)
	a := r.shown()
	ok := a.Type == "qr_code" && a.QRCode != "" || a.Type == "form" && a.URL != "" && len(a.Fields) > 0
	if r.code != http.StatusCreated || r.payment().Status != "PENDING" || !ok {
		t.Fatalf("not waiting for the payer: %s", r)
	}
	return r.payment()
}

// scanned is code, and the payer has scanned it: from now on there is a trade.
func (w *world) scanned(t testing.TB, no string) payment {
	t.Helper()
	p := w.code(t, no)
	w.sim.scans(t, p.Number)
	return p
}

// isPaid waits until the order is paid, and checks that it was paid once.
func (w *world) isPaid(t testing.TB, no string) payment {
	t.Helper()
	until(t, soon, "order "+no+" is paid", func() bool { return w.order(no).Status == "PAID" })
	return w.paidOnce(t, no)
}

// stays checks a few times that an order keeps its state.
func (w *world) stays(t testing.TB, no, status string) {
	t.Helper()
	for range 3 {
		if o := w.order(no); o.Status != status {
			t.Fatalf("order %s is %s, want %s", no, o.Status, status)
		}
		pace(100 * time.Millisecond)
	}
}

// line is the newest object of a number on the books.
func (w *world) line(t testing.TB, number string) charge {
	t.Helper()
	all := w.sim.books(t).of(number)
	if len(all) == 0 {
		t.Fatalf("%s is not on the books", number)
	}
	return all[len(all)-1]
}

// surplusOnly checks an order that is closed, and the money that came all the
// same: none of it is effective, all of it is on our books.
func (w *world) surplusOnly(t testing.TB, no string, sum int64) {
	t.Helper()
	var o order
	if !poll(soon, func() bool { o = w.order(no); return o.AmountSurplus == sum }) {
		t.Fatalf("the surplus of %d is not recorded: %+v", sum, o)
	}
	if o.Status != "CLOSED" || o.AmountPaid != 0 {
		t.Errorf("the order is %+v", o)
	}
	for _, p := range o.Payments {
		if p.Effective {
			t.Errorf("an effective payment of a closed order: %+v", p)
		}
	}
}

// paidAndSurplus checks an order that two payers paid: one success counts, the
// other is surplus, and both are on the books.
func (w *world) paidAndSurplus(t testing.TB, no string) {
	t.Helper()
	var o order
	if !poll(soon, func() bool { o = w.order(no); return o.Status == "PAID" && o.AmountSurplus == 1000 }) {
		t.Fatalf("not paid once with one surplus: %+v", o)
	}
	effective, succeeded := 0, 0
	for _, p := range o.Payments {
		if p.Effective {
			effective++
		}
		if p.Status == "SUCCEEDED" {
			succeeded++
		}
	}
	if effective != 1 || succeeded != 2 || o.AmountPaid != 1000 {
		t.Errorf("%d effective of %d successes: %+v", effective, succeeded, o)
	}
	if took := w.taken(t, no); len(took) != 2 {
		t.Errorf("charges on the books: %+v", took)
	}
}
