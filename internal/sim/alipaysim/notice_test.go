package alipaysim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// notices are the books' lines of a number, of one type.
func (r *rig) notices(number, kind string) []map[string]any {
	r.t.Helper()
	var out []map[string]any
	for _, n := range r.books("notices", number) {
		if n["type"] == kind {
			out = append(out, n)
		}
	}
	return out
}

func (r *rig) acknowledged(number, kind string) {
	r.t.Helper()
	until(r.t, number+" "+kind+" acknowledged", func() bool {
		l := r.notices(number, kind)
		return len(l) > 0 && l[len(l)-1]["acknowledged"] == true
	})
}

func TestNoticeOfAPayment(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	r.api("precreate", order("N1", `,"body":"a+b & c=d %41","passback_params":"x%3D1"`), "10000", "notify_url", s.srv.URL+"/in?who=us&sign=1")
	r.pay("N1", "", 200)
	d := s.next(t)
	equal(t, "signed over all fields but sign and sign_type", r.genuineNotice(d), true)
	no := r.line("N1")["payment_id"].(string)
	for name, want := range map[string]string{"notify_type": "trade_status_sync", "app_id": r.app, "auth_app_id": r.app,
		"seller_id": r.seller, "charset": "utf-8", "version": "1.0", "sign_type": "RSA2", "trade_no": no, "out_trade_no": "N1",
		"trade_status": "TRADE_SUCCESS", "total_amount": "10.00", "receipt_amount": "9.99", "subject": "测试",
		"body": "a+b & c=d %41", "passback_params": "x%3D1", "refund_fee": "", "gmt_refund": "", "out_biz_no": ""} {
		equal(t, name, d.form.Get(name), want)
	}
	sent, err := time.ParseInLocation(layout, d.form.Get("notify_time"), beijing)
	r.ok(err)
	if age := time.Since(sent); age < -time.Second || age > time.Minute {
		t.Fatalf("notify_time is %v old", age)
	}
	for name, values := range d.form {
		if values[0] == "" || len(values) != 1 {
			t.Fatalf("field %s is %q", name, values)
		}
	}
	r.acknowledged("N1", "TRADE_SUCCESS")
	l := r.notices("N1", "TRADE_SUCCESS")
	equal(t, "one", len(l), 1)
	equal(t, "event", l[0]["event_id"], any(d.form.Get("notify_id")))
	equal(t, "deliveries", l[0]["deliveries"], any(1.0))
	equal(t, "resent", r.control("POST", "/_sim/notices/resend", `{"number":"N1"}`, 200)["resent"], any(1.0))
	equal(t, "same event", s.next(t).form.Get("notify_id"), d.form.Get("notify_id"))
}

// TestOnlyTheWordEndsTheResends: anything but HTTP 200 with the seven bytes is
// no acknowledgement, and the gaps are the published ones.
func TestOnlyTheWordEndsTheResends(t *testing.T) {
	answers := []struct {
		status int
		body   string
	}{{200, "fail"}, {200, "success\n"}, {200, "SUCCESS"}, {500, "success"}, {302, "success"}, {201, "success"}, {200, ""}, {200, "fail"}}
	r := newRig(t)
	s := newShop(t, func(n int, _ notice) (int, string) { return answers[n].status, answers[n].body })
	r.qr("W1", "notify_url", s.srv.URL)
	r.pay("W1", "", 200)
	id := s.next(t).form.Get("notify_id")
	booked := func(n int) {
		until(t, fmt.Sprint(n, " deliveries"), func() bool { return r.notices("W1", "TRADE_SUCCESS")[0]["deliveries"] == float64(n) })
	}
	booked(1)
	for n, gap := range []int{240, 600, 600, 3600, 7200, 21600, 54000} {
		r.advance(fmt.Sprint(gap - 20))
		equal(t, fmt.Sprint("nothing before gap ", gap), len(s.got), 0)
		r.advance("20")
		d := s.next(t)
		equal(t, "same event", d.form.Get("notify_id"), id)
		equal(t, "signed", r.genuineNotice(d), true)
		booked(n + 2)
		if n == 2 {
			r.reopen() // a pending notice survives
		}
	}
	r.advance("864000")
	l := r.notices("W1", "TRADE_SUCCESS")[0]
	equal(t, "eight in all", l["deliveries"], any(8.0))
	equal(t, "never acknowledged", l["acknowledged"], any(false))
}

// TestO10_EventsOfOneNumber: refunds fire again, and which statuses are
// notified is a switch each.
func TestO10_EventsOfOneNumber(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	url := s.srv.URL
	next := func(status, biz, fee string) {
		t.Helper()
		d := s.next(t)
		if d.form.Get("trade_status") != status || d.form.Get("out_biz_no") != biz || d.form.Get("refund_fee") != fee || !r.genuineNotice(d) {
			t.Fatalf("notice %v, want %s %s %s", d.form, status, biz, fee)
		}
		if status == "TRADE_CLOSED" && d.form.Get("gmt_close") == "" || fee != "" && !strings.HasSuffix(d.form.Get("gmt_refund"), ".000") {
			t.Fatalf("times of %v", d.form)
		}
	}
	r.qr("E1", "notify_url", url)
	r.pay("E1", `,"outcome":"scanned"`, 200)
	r.pay("E1", "", 200)
	next("TRADE_SUCCESS", "", "")
	r.api("refund", back("E1", "a", "3.00"), "10000")
	next("TRADE_SUCCESS", "a", "3.00")
	r.api("refund", back("E1", "b", "7.00"), "10000")
	next("TRADE_CLOSED", "b", "10.00")
	r.api("refund", back("E1", "b", "7.00"), "10000") // a repeat tells nothing new
	equal(t, "three events", len(r.books("notices", "E1")), 3)

	for _, name := range []string{"notify_wait_buyer_pay", "notify_trade_closed", "notify_trade_finished"} {
		r.turn(name, "on")
	}
	r.qr("E2", "notify_url", url)
	r.pay("E2", `,"outcome":"scanned"`, 200)
	next("WAIT_BUYER_PAY", "", "")
	r.api("close", about("E2"), "10000")
	next("TRADE_CLOSED", "", "")
	r.qr("E3", "notify_url", url)
	r.pay("E3", "", 200)
	if a, b := s.next(t).form.Get("trade_status"), s.next(t).form.Get("trade_status"); a == b {
		t.Fatal("not two events")
	}
	r.advance("31536001")
	next("TRADE_FINISHED", "", "")

	r.control("DELETE", "/_sim/switches", "", 200)
	for _, name := range []string{"notify_trade_success", "notify_refunds"} {
		r.turn(name, "off")
	}
	r.qr("E4", "notify_url", url)
	r.pay("E4", "", 200)
	r.api("refund", back("E4", "a", "3.00"), "10000")
	equal(t, "silence", len(r.books("notices", "E4")), 0)

	other := newShop(t, nil)
	r.qr("E5", "notify_url", url)
	r.pay("E5", `,"outcome":"scanned"`, 200)
	r.api("close", about("E5"), "10000", "notify_url", other.srv.URL)
	equal(t, "an address of close's own", other.next(t).form.Get("trade_status"), "TRADE_CLOSED")
	r.control("POST", "/_sim/switches", `{"channel":"alipay","switch":"nothing","value":"on"}`, 400)
	r.control("POST", "/_sim/switches", `{"channel":"alipay","switch":"notify_refunds","value":"maybe"}`, 400)
	equal(t, "listed", len(r.control("GET", "/_sim/switches", "", 200)["switches"].([]any)) > 5, true)
}

func TestNoticeVariants(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	for _, value := range []string{"signed", "unsigned"} {
		r.turn("notice_empty_fields", value)
		r.turn("buyer_identity", "open_id")
		r.qr("V_"+value, "notify_url", s.srv.URL)
		r.pay("V_"+value, "", 200)
		d := s.next(t)
		_, empty := d.form["voucher_detail_list"]
		equal(t, "has empty fields", empty, true)
		equal(t, "which are signed", r.genuineNotice(d), value == "signed")
		equal(t, "open id", d.form.Get("buyer_id") == "" && d.form.Get("buyer_open_id") != "", true)
		for name := range d.form {
			if d.form.Get(name) == "" {
				d.form.Del(name)
			}
		}
		equal(t, "without them", r.genuineNotice(d), value == "unsigned")
	}
	equal(t, "query", r.api("query", about("V_signed"), "10000").str("buyer_open_id") != "", true)
}

func TestNoticeFaults(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	play := func(number, fault string) {
		t.Helper()
		r.fault("notice", fault, `,"number":"`+number+`"`)
		r.qr(number, "notify_url", s.srv.URL)
		r.pay(number, "", 200)
	}
	play("bad", "bad_signature")
	equal(t, "bad", r.genuineNotice(s.next(t)), false)
	play("wrong", "wrong_amount")
	d := s.next(t)
	equal(t, "wrong amount", d.form.Get("total_amount"), "0.01")
	equal(t, "rightly signed", r.genuineNotice(d), true)
	play("foreign", "foreign_account")
	d = s.next(t)
	equal(t, "foreign", d.form.Get("app_id") != r.app && d.form.Get("seller_id") != r.seller && r.genuineNotice(d), true)
	play("cut", "truncated")
	equal(t, "cut", r.genuineNotice(s.next(t)), false)
	play("twice", "duplicate:2")
	id := s.next(t).form.Get("notify_id")
	for range 2 {
		equal(t, "same event", s.next(t).form.Get("notify_id"), id)
	}
	play("late", "late")
	equal(t, "not yet", len(s.got), 0)
	equal(t, "late", s.next(t).form.Get("out_trade_no"), "late")
	play("dropped", "drop")
	r.advance("864000")
	equal(t, "never sent", r.notices("dropped", "TRADE_SUCCESS")[0]["deliveries"], any(0.0))
	r.control("POST", "/_sim/notices/resend", `{"number":"dropped"}`, 200)
	equal(t, "unless asked for", s.next(t).form.Get("out_trade_no"), "dropped")
	play("unheard", "lose_response")
	s.next(t)
	until(t, "booked", func() bool { return r.notices("unheard", "TRADE_SUCCESS")[0]["deliveries"] == 1.0 })
	r.advance("240")
	equal(t, "again", s.next(t).form.Get("out_trade_no"), "unheard")
	play("unsent", "lose_request")
	until(t, "tried", func() bool { r.advance("240"); return len(s.got) > 0 })
	equal(t, "later", s.next(t).form.Get("out_trade_no"), "unsent")

	play("turned", "reorder")
	r.api("refund", back("turned", "a", "10.00"), "10000")
	equal(t, "first", s.next(t).form.Get("trade_status"), "TRADE_CLOSED")
	equal(t, "second", s.next(t).form.Get("trade_status"), "TRADE_SUCCESS")

	r.fault("notice", "before_response", `,"number":"before"`)
	r.qr("before", "notify_url", s.srv.URL)
	r.pay("before", "", 200)
	s.next(t)
	r.fault("refund", "before_response", `,"number":"before"`)
	r.api("refund", back("before", "a", "1.00"), "10000")
	equal(t, "before the answer", len(s.got), 1)
	s.next(t)
	r.fault("create", "before_response", `,"number":"prompt"`)
	r.qr("prompt", "notify_url", s.srv.URL)
	equal(t, "paid before the code was known", len(s.got), 1)
}

func TestScanDoesNotUseUpTheFaultOfThePayment(t *testing.T) {
	r, s := newRig(t), newShop(t, nil)
	r.turn("notify_wait_buyer_pay", "on")
	r.fault("notice", "drop", "")
	r.qr("U1", "notify_url", s.srv.URL)
	r.pay("U1", `,"outcome":"scanned"`, 200)
	equal(t, "told", s.next(t).form.Get("trade_status"), "WAIT_BUYER_PAY")
	r.pay("U1", "", 200)
	equal(t, "dropped", r.notices("U1", "TRADE_SUCCESS")[0]["deliveries"], any(0.0))
}
