package web

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/engine"
)

// What a page proposes does not depend on the order in which an account lists
// its methods, each way has a name of its own, and a way that does not take the
// order's currency is not offered.
func TestWaysToPayAreSortedNamedAndPossible(t *testing.T) {
	labels := func(c payonce.Currency) (out []string) {
		o := openOrder()
		o.Order.Currency = c
		r := newRig(t, o, nil)
		for part := range strings.SplitSeq(r.get(r.path).Body.String(), `data-test="choice-`) {
			label, _, _ := strings.Cut(part, `"`)
			out = append(out, label)
		}
		return out[1:]
	}
	if got := strings.Join(labels("CNY"), " "); got != "card-pays card-declined alipay-qr alipay-page" {
		t.Errorf("CNY: %s", got)
	}
	if got := strings.Join(labels("USD"), " "); got != "card-pays card-declined" {
		t.Errorf("USD: %s", got)
	}
}

func waitingForScan() (*payonce.Payment, time.Time) {
	p := attempt(payonce.Pending)
	end := noon.Add(15 * time.Minute)
	p.Action = &payonce.Action{Type: "qr_code", QRCode: "https://qr.example/x", ExpiresAt: end}
	p.DeadAt = end
	return p, end
}

func TestAPageSaysHowLongACodeLasts(t *testing.T) {
	o := openOrder()
	p, _ := waitingForScan()
	o.Payments = []*payonce.Payment{p}
	r := newRig(t, o, nil)
	body := r.get(r.path + "?lang=en").Body.String()
	for _, want := range []string{`data-test="time-left"`, `data-until="1772367300000">until 12:15 UTC</time>`, `data-now="1772366400000"`, `href="https://qr.example/x"`, "Alipay: scan a code"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	live := openOrder()
	live.Order.Key.Environment = payonce.Live
	live.Payments = o.Payments
	if r := newRig(t, live, nil); strings.Contains(r.get(r.path).Body.String(), "qr.example") {
		t.Error("a live page leads where only the channel's app should")
	}
}

// A payer who asked for another way while a code is payable is told why it has
// to wait and for how long, as long as that is so and no longer.
func TestA06_WhyAnotherWayHasToWait(t *testing.T) {
	o := openOrder()
	p, end := waitingForScan()
	o.Payments = []*payonce.Payment{p}
	r := newRig(t, o, nil)
	r.err = &engine.Refusal{Err: payonce.Errorf(payonce.CodeOutcomeUnknown, "x"), Payment: p, ProvableAt: end.Add(payonce.DeathMargin)}
	form := url.Values{"ended": {"0"}, "replace": {"pay_1"}, "choice": {"s1.card.pm_card_visa"}}
	told := func(body string) bool {
		return strings.Contains(body, "free-in") && strings.Contains(body, "may still take money")
	}
	if body := r.post(r.path+"/pay?lang=en", form, "Accept", "application/json").Body.String(); !told(body) || !strings.Contains(body, `"notice":"earlier-live"`) {
		t.Errorf("the answer: %s", body)
	}
	if body := r.get(r.path + "/state?lang=en&notice=earlier-live&phase=waiting").Body.String(); !told(body) {
		t.Error("the next poll forgets it")
	}
	if body := r.get(r.path + "/state?lang=en&notice=earlier-live&phase=ready").Body.String(); told(body) {
		t.Error("it outlives its phase")
	}
}
