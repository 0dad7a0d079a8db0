package web

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

// The address stands in mails and on receipts: it may not change with a version.
func TestCheckoutAddressesAreKeptForEver(t *testing.T) {
	r := newRig(t, openOrder(), nil)
	const want = "https://pay.example/checkout/AQJtMQR0ZXN0A0EtMW_CsVUC-3KyXpIKA7INUD4"
	if got := CheckoutURL(r.signer)(order); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestForgedCheckoutTokensShowNothing(t *testing.T) {
	r := newRig(t, openOrder(), nil)
	good := strings.TrimPrefix(r.path, "/checkout/")
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	forged := map[string]string{"empty tag": base64.RawURLEncoding.EncodeToString(raw[:len(raw)-tagSize]), "cut": good[:len(good)-4], "longer": good + "AAAA",
		"not base64": "%2e%2e", "only a byte": "AQ", "huge": strings.Repeat("A", 600)}
	for i := range raw {
		b := append([]byte(nil), raw...)
		b[i] ^= 1
		forged["bit of byte "+string(rune('a'+i))] = base64.RawURLEncoding.EncodeToString(b)
	}
	foreign, err := NewSigner("another installation id", "")
	if err != nil {
		t.Fatal(err)
	}
	forged["another installation"] = foreign.token(order)
	for name, token := range forged {
		for _, path := range []string{"/checkout/" + token, "/checkout/" + token + "/state"} {
			if w := r.get(path); w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "teapot") {
				t.Errorf("%s: GET %s: %d", name, path, w.Code)
			}
		}
		if w := r.post("/checkout/"+token+"/pay", nil); w.Code != http.StatusNotFound {
			t.Errorf("%s: POST: %d", name, w.Code)
		}
	}
	if len(r.paid) != 0 {
		t.Errorf("the engine was asked: %v", r.paid)
	}
	other := payonce.OrderKey{Merchant: "m1", Environment: payonce.Live, OrderNo: "A-1"}
	if w := r.get("/checkout/" + r.signer.token(other)); w.Code != http.StatusNotFound {
		t.Errorf("the address of an order that is not there: %d", w.Code)
	}
}

func TestE01_EveryClickOfOneIntentIsOneRequest(t *testing.T) {
	r := newRig(t, openOrder(), nil)
	first := url.Values{"ended": {"0"}, "replace": {""}, "choice": {"s1.card.pm_card_visa"}}
	other := url.Values{"ended": {"0"}, "replace": {""}, "choice": {"s1.card.pm_card_visa_chargeDeclined"}}
	for _, form := range []url.Values{first, first, other, {}} { // double click, second device, a form without script
		if w := r.post(r.path+"/pay", form); w.Code != http.StatusSeeOther {
			t.Fatalf("answer %d", w.Code)
		}
	}
	for i, p := range r.paid {
		if p.Key != r.paid[0].Key || p.Fingerprint != r.paid[0].Fingerprint {
			t.Errorf("click %d is another request", i)
		}
		if !p.Same(r.paid[0].Fingerprint) {
			t.Errorf("click %d does not know the first one's fingerprint", i)
		}
	}
	if len(r.paid) != 4 || r.paid[2].Payer.PaymentMethod != "pm_card_visa_chargeDeclined" {
		t.Errorf("asked %d times", len(r.paid))
	}
}

func TestE01_AnOlderPageDoesNotStartTheNextAttempt(t *testing.T) {
	o := openOrder()
	r := newRig(t, o, nil)
	r.onPay = func(o *store.OrderWithPayments, _ engine.PayRequest) {
		if len(o.Payments) == 0 {
			o.Payments = append(o.Payments, attempt(payonce.Failed))
		}
	}
	click := url.Values{"ended": {"0"}, "replace": {""}, "choice": {"s1.card.pm_card_visa"}}
	r.post(r.path+"/pay", click)
	w := r.post(r.path+"/pay", click, "Accept", "application/json")
	if len(r.paid) != 1 {
		t.Fatalf("the second click of a double click was a new attempt")
	}
	if !strings.Contains(w.Body.String(), "declined") {
		t.Errorf("the state is not shown: %s", w.Body)
	}
	click.Set("ended", "1")
	r.post(r.path+"/pay", click)
	if len(r.paid) != 2 || r.paid[1].Key == r.paid[0].Key {
		t.Errorf("trying again after a decline needs a key of its own")
	}
	click.Set("ended", "7")
	if r.post(r.path+"/pay", click); len(r.paid) != 2 {
		t.Errorf("a form that we never made was followed")
	}
}

func TestE01_ADeclinedObjectIsReplacedByAWishOfItsOwn(t *testing.T) {
	o := openOrder()
	p := attempt(payonce.Pending)
	p.Declined = true
	o.Payments = []*payonce.Payment{p}
	r := newRig(t, o, nil)
	stale := url.Values{"ended": {"0"}, "replace": {""}}
	if r.post(r.path+"/pay", stale); len(r.paid) != 0 {
		t.Fatal("a page from before the decline was followed")
	}
	if !strings.Contains(r.get(r.path).Body.String(), `name="replace" value="pay_1"`) {
		t.Fatal("the page does not say what it replaces")
	}
	if r.post(r.path+"/pay", url.Values{"ended": {"0"}, "replace": {"pay_1"}}); len(r.paid) != 1 {
		t.Fatal("the wish was not followed")
	}
}

func TestA06_APayerWhoWaitsMayChooseAnotherWay(t *testing.T) {
	o := openOrder()
	p := attempt(payonce.Pending)
	p.Action = &payonce.Action{Type: "redirect", URL: "https://bank.example/"}
	o.Payments = []*payonce.Payment{p}
	r := newRig(t, o, nil)
	r.post(r.path+"/pay", url.Values{"ended": {"0"}, "replace": {""}})      // the second click of the first wish
	r.post(r.path+"/pay", url.Values{"ended": {"0"}, "replace": {"pay_1"}}) // another way, in two tabs
	r.post(r.path+"/pay", url.Values{"ended": {"0"}, "replace": {"pay_1"}})
	r.post(r.path+"/pay", url.Values{"ended": {"0"}, "replace": {"pay_2"}}) // never shown
	if len(r.paid) != 3 || r.paid[0].Key == r.paid[1].Key || r.paid[1].Key != r.paid[2].Key {
		t.Errorf("asked %d times", len(r.paid))
	}
	if body := r.get(r.path).Body.String(); !strings.Contains(body, `data-test="other-way"`) || !strings.Contains(body, `href="https://bank.example/"`) {
		t.Error("the page offers only one of going on and another way")
	}
}

// A payer who asked for another attempt in place of this one gets it when this
// one has ended by itself between the look and the click; an older page does not.
func TestE01_WhatWasToBeReplacedMayHaveEndedByItself(t *testing.T) {
	for _, tc := range []struct {
		status payonce.PaymentStatus
		form   url.Values
		want   int
	}{
		{payonce.Failed, url.Values{"ended": {"0"}, "replace": {"pay_1"}}, 1},
		{payonce.Cancelled, url.Values{"ended": {"0"}, "replace": {"pay_1"}}, 1},
		{payonce.Cancelled, url.Values{"ended": {"0"}, "replace": {"pay_0"}}, 0},
		{payonce.Cancelled, url.Values{"ended": {"0"}, "replace": {""}}, 0},
		{payonce.Unknown, url.Values{"ended": {"0"}, "replace": {"pay_1"}}, 0},
	} {
		o := openOrder()
		o.Payments = []*payonce.Payment{attempt(tc.status)}
		r := newRig(t, o, nil)
		r.post(r.path+"/pay", tc.form)
		r.post(r.path+"/pay", tc.form)
		if tc.want = 2 * tc.want; len(r.paid) != tc.want {
			t.Fatalf("%s, %v: asked %d times", tc.status, tc.form, len(r.paid))
		}
		if tc.want == 0 {
			continue
		}
		r.post(r.path+"/pay", url.Values{"ended": {"1"}, "replace": {""}}) // a page of now
		if r.paid[0].Key != r.paid[1].Key || r.paid[1].Key != r.paid[2].Key {
			t.Errorf("%s: the same wish has several keys", tc.status)
		}
	}
}

func TestR17_ReturnPagesChangeNothing(t *testing.T) {
	o := openOrder()
	o.Payments = []*payonce.Payment{attempt(payonce.Unknown)}
	r := newRig(t, o, nil)
	for _, q := range []string{"", "?payment_intent=pi_1&redirect_status=succeeded", "?status=failed", "/state?redirect_status=failed"} {
		if w := r.get(r.path + q); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Confirming the result, please do not pay again") {
			t.Errorf("%q: %d", q, w.Code)
		}
	}
	if len(r.paid) != 0 || o.Payments[0].Status != payonce.Unknown {
		t.Error("a look changed something")
	}
}

func TestLookTellsWhatIsKnown(t *testing.T) {
	with := func(change func(*payonce.Payment), s payonce.PaymentStatus) []*payonce.Payment {
		p := attempt(s)
		change(p)
		return []*payonce.Payment{p}
	}
	plain := func(*payonce.Payment) {}
	for name, tc := range map[string]struct {
		order    func(*payonce.Order)
		payments []*payonce.Payment
		want     phase
		ended    int
	}{
		"new":                   {want: phaseReady},
		"not sent yet":          {payments: with(plain, payonce.Created), want: phaseConfirming},
		"under way":             {payments: with(plain, payonce.Processing), want: phaseConfirming},
		"unknown":               {payments: with(plain, payonce.Unknown), want: phaseConfirming},
		"accepted by the bank":  {payments: with(plain, payonce.Pending), want: phaseConfirming},
		"waits for the payer":   {payments: with(func(p *payonce.Payment) { p.Action = &payonce.Action{Type: "redirect"} }, payonce.Pending), want: phaseWaiting},
		"action expired":        {payments: with(func(p *payonce.Payment) { p.Action = &payonce.Action{Type: "redirect", ExpiresAt: noon} }, payonce.Pending), want: phaseConfirming},
		"declined, usable":      {payments: with(func(p *payonce.Payment) { p.Declined = true }, payonce.Pending), want: phaseDeclined},
		"declined":              {payments: with(plain, payonce.Failed), want: phaseDeclined, ended: 1},
		"cancelled":             {payments: with(plain, payonce.Cancelled), want: phaseCancelled, ended: 1},
		"paid":                  {order: func(o *payonce.Order) { o.Status = payonce.OrderPaid }, payments: with(func(p *payonce.Payment) { p.Effective = true }, payonce.Succeeded), want: phasePaid},
		"closed":                {order: func(o *payonce.Order) { o.Status = payonce.OrderClosed }, want: phaseClosed},
		"expired":               {order: func(o *payonce.Order) { o.ExpiresAt = noon }, want: phaseClosed},
		"expired but unknown":   {order: func(o *payonce.Order) { o.ExpiresAt = noon }, payments: with(plain, payonce.Unknown), want: phaseConfirming},
		"closing":               {order: func(o *payonce.Order) { o.Status = payonce.OrderClosing }, payments: with(func(p *payonce.Payment) { p.Superseded = true }, payonce.Unknown), want: phaseConfirming},
		"closing, action there": {order: func(o *payonce.Order) { o.Status = payonce.OrderClosing }, payments: with(func(p *payonce.Payment) { p.Action = &payonce.Action{Type: "redirect"} }, payonce.Pending), want: phaseConfirming},
		"split":                 {order: func(o *payonce.Order) { o.Policy = payonce.PolicySplit }, want: phaseUnavailable},
	} {
		o := openOrder()
		if tc.order != nil {
			tc.order(o.Order)
		}
		o.Payments = tc.payments
		if v := look(o, noon); v.Phase != tc.want || v.Ended != tc.ended {
			t.Errorf("%s: %s with %d ended, want %s with %d", name, v.Phase, v.Ended, tc.want, tc.ended)
		}
	}
}

func TestRefusalsAreToldHonestly(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&engine.Refusal{Err: payonce.Errorf(payonce.CodeOrderAlreadyPaid, "x")}, ""},
		{&engine.Refusal{Err: payonce.Errorf(payonce.CodeOutcomeUnknown, "x")}, "earlier-live"},
		{&engine.Refusal{Err: idempotency.InProgress("pay_1", time.Second)}, ""},
		{payonce.Invalid("/amount", "too small"), "cannot-pay"},
		{store.ErrUnavailable, "busy"},
		{errors.New("anything"), "busy"},
	} {
		r := newRig(t, openOrder(), nil)
		r.err = tc.err
		w := r.post(r.path+"/pay?lang=en", nil)
		if got := strings.Contains(w.Header().Get("Location"), "notice="); w.Code != http.StatusSeeOther || got != (tc.want != "") {
			t.Errorf("%v: %d %s", tc.err, w.Code, w.Header().Get("Location"))
		}
		if tc.want != "" && !strings.HasSuffix(w.Header().Get("Location"), "notice="+tc.want) {
			t.Errorf("%v: %s, want %s", tc.err, w.Header().Get("Location"), tc.want)
		}
	}
}

func TestADeadDatabaseIsNotAFailedPayment(t *testing.T) {
	r := newRig(t, openOrder(), nil)
	r.broken = store.ErrUnavailable
	w := r.get(r.path)
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "please do not pay again") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
