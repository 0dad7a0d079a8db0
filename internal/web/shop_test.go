package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/store"
)

func demo() *Shop {
	return &Shop{
		Scope: store.Scope{Merchant: "m1", Environment: payonce.Test}, BooksURL: "http://sim/_sim/books", Process: "pid 7",
		Books: func(context.Context) (*Books, error) { return &Books{}, nil },
	}
}

func TestTheShopIsThereOnlyInADemo(t *testing.T) {
	r := newRig(t, openOrder(), nil)
	for _, path := range []string{"/shop", "/shop/orders/A-1"} {
		if w := r.get(path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := r.post("/shop/kill", url.Values{"order": {"A-1"}}); w.Code != http.StatusNotFound {
		t.Errorf("kill: %d", w.Code)
	}
}

func TestTheStoryPutsBothBooksSideBySide(t *testing.T) {
	for name, tc := range map[string]struct {
		charges []BookCharge
		paid    bool
		verdict string
		took    string
	}{
		"nothing":             {verdict: "verdict-none", took: "0"},
		"charged, not known":  {charges: []BookCharge{{Number: "N0000000000000000001", Status: "paid", Amount: 1999, Currency: "CNY"}}, verdict: "verdict-wait", took: "1"},
		"charged and paid":    {charges: []BookCharge{{Number: "N0000000000000000001", Status: "paid"}, {Number: "FOREIGN", Status: "paid"}}, paid: true, verdict: "verdict-one", took: "1"},
		"charged twice":       {charges: []BookCharge{{Number: "N0000000000000000001", Status: "paid"}, {Number: "N0000000000000000001", Status: "refunded"}}, paid: true, verdict: "verdict-more", took: "2"},
		"declined at channel": {charges: []BookCharge{{Number: "N0000000000000000001", Status: "declined"}}, verdict: "verdict-none", took: "0"},
	} {
		o, s := openOrder(), demo()
		o.Payments = []*payonce.Payment{attempt(payonce.Failed)}
		if tc.paid {
			o.Order.Status = payonce.OrderPaid
			o.Payments[0].Status = payonce.Succeeded
		}
		s.Books = func(context.Context) (*Books, error) { return &Books{Charges: tc.charges}, nil }
		w := newRig(t, o, s).get("/shop/orders/A-1")
		body := w.Body.String()
		if !strings.Contains(body, `data-verdict="`+tc.verdict+`"`) || !strings.Contains(body, `data-test="charges">`+tc.took+`<`) || !strings.Contains(body, "pid 7") {
			t.Errorf("%s: %d\n%s", name, w.Code, body)
		}
		checkNothingInline(t, name, body)
	}
}

func TestLostBooksAreSaidToBeLost(t *testing.T) {
	s := demo()
	s.Books = func(context.Context) (*Books, error) { return nil, errors.New("gone") }
	if body := newRig(t, openOrder(), s).get("/shop/orders/A-1").Body.String(); !strings.Contains(body, `data-test="books-gone"`) {
		t.Error(body)
	}
}

func TestAnOrderIsMadeFromWholeMinorUnits(t *testing.T) {
	for _, tc := range []struct {
		text     string
		currency payonce.Currency
		want     payonce.Amount
	}{
		{"19.99", "USD", 1999}, {"19.9", "USD", 1990}, {"19", "USD", 1900}, {"1999", "JPY", 1999}, {"1.234", "KWD", 1234}, {" 0.01 ", "CNY", 1},
		{"19.999", "USD", 0}, {"1.5", "JPY", 0}, {"0", "USD", 0}, {"-1", "USD", 0}, {"+1", "USD", 0}, {"1e2", "USD", 0}, {"", "USD", 0}, {".5", "USD", 0},
		{"1.-5", "USD", 0}, {"99999999999999999999", "USD", 0}, {"1", "XXX", 0},
	} {
		got, ok := parseMoney(tc.text, tc.currency)
		if ok != (tc.want != 0) || ok && got != tc.want {
			t.Errorf("%q %s: %d %v, want %d", tc.text, tc.currency, got, ok, tc.want)
		}
	}
	r := newRig(t, openOrder(), demo())
	w := r.post("/shop/orders", url.Values{"subject": {"Tea"}, "amount": {"19.99"}, "currency": {"USD"}})
	if loc := w.Header().Get("Location"); w.Code != http.StatusSeeOther || !strings.HasPrefix(loc, "/shop/orders/demo-") {
		t.Fatalf("%d %s", w.Code, loc)
	}
	if w := r.get(w.Header().Get("Location")); !strings.Contains(w.Body.String(), "19.99 USD") {
		t.Error("the order's page does not show it")
	}
	if w := r.post("/shop/orders", url.Values{"subject": {"Tea"}, "amount": {"1.999"}, "currency": {"USD"}}); w.Code != http.StatusBadRequest {
		t.Errorf("a wrong amount: %d", w.Code)
	}
}

// A refused order leaves the browser at the address that it was sent to: what
// was typed stays, and a reload or the other language finds a page.
func TestARefusedOrderKeepsWhatWasTyped(t *testing.T) {
	r := newRig(t, openOrder(), demo())
	w := r.post("/shop/orders", url.Values{"subject": {"Tea & cake"}, "amount": {"1.234"}, "currency": {"EUR"}})
	body := w.Body.String()
	if w.Code != http.StatusBadRequest || !strings.Contains(body, `value="Tea &amp; cake"`) || !strings.Contains(body, `value="1.234"`) || !strings.Contains(body, "<option selected>EUR") {
		t.Errorf("%d %s", w.Code, body)
	}
	if w := r.get("/shop/orders?lang=zh"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "一把茶壶") {
		t.Errorf("%d", w.Code)
	}
}

func TestCarelessClicksBringTheirOwnKeys(t *testing.T) {
	r := newRig(t, openOrder(), demo())
	for _, fresh := range []string{"", "", "1", "1"} {
		if w := r.post("/shop/orders/A-1/pay", url.Values{"fresh": {fresh}}, "Accept", "application/json"); w.Code != http.StatusOK {
			t.Fatalf("%d", w.Code)
		}
	}
	if len(r.paid) != 4 || r.paid[0].Key != r.paid[1].Key || r.paid[1].Key == r.paid[2].Key || r.paid[2].Key == r.paid[3].Key {
		t.Error("the keys are wrong")
	}
}

func TestFaultsAreHandedToTheSimulator(t *testing.T) {
	s := demo()
	var got []string
	s.Fault = func(_ context.Context, channel, operation, fault string, delay time.Duration) error {
		got = append(got, channel+" "+operation+" "+fault+" "+delay.String())
		return nil
	}
	r := newRig(t, openOrder(), s)
	r.post("/shop/fault", url.Values{"order": {"A-1"}, "fault": {"lose"}})
	r.post("/shop/fault", url.Values{"order": {"A-1"}, "fault": {"slow"}})
	r.post("/shop/fault", url.Values{"order": {"A-1"}, "fault": {"lose"}, "choice": {"a1.qr."}})
	if strings.Join(got, ", ") != "stripe confirm lose_response 0s, stripe confirm delay 4s, alipay create lose_response 0s" {
		t.Errorf("got %q", got)
	}
}

func TestTheServiceAnswersBeforeItKillsItself(t *testing.T) {
	s, killed := demo(), 0
	s.Kill = func() { killed++ }
	r := newRig(t, openOrder(), s)
	w := r.post("/shop/kill", url.Values{"order": {"A-1"}}, "Accept", "application/json")
	if killed != 1 || !w.Flushed || !strings.Contains(w.Body.String(), "killed") {
		t.Errorf("killed %d times, flushed %v, %s", killed, w.Flushed, w.Body)
	}
	if r.post("/shop/kill", url.Values{"order": {"../x"}}); killed != 1 {
		t.Error("killed without an order's page")
	}
}
