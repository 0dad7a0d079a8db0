package alipay

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/payonce/payonce"
	"pgregory.net/rapid"
)

func bizOf(t interface{ Fatal(...any) }, request []byte) map[string]string {
	for line := range strings.Lines(string(request)) {
		if text, ok := strings.CutPrefix(line, "biz_content="); ok {
			var m map[string]string
			if err := json.Unmarshal([]byte(text), &m); err != nil {
				t.Fatal(err)
			}
			return m
		}
	}
	t.Fatal("no biz_content")
	return nil
}

// TestCompose_QR: the stored request, byte for byte.
func TestCompose_QR(t *testing.T) {
	a := newAdapter(t, "", nil)
	got, err := a.Compose(testIntent(MethodQR))
	want := "alipay/1\napp_id=" + testApp + "\n" +
		`biz_content={"out_trade_no":"` + testNumber + `","total_amount":"19.99","subject":"Tea ＆ cake 茶","product_code":"FACE_TO_FACE_PAYMENT",` +
		`"time_expire":"2026-01-02 11:04:06","qr_code_timeout_express":"15m","passback_params":"test%3Am1%3Aorder-1%3A1"}` + "\n" +
		"charset=utf-8\nformat=JSON\nmethod=alipay.trade.precreate\nnotify_url=https://pay.example/webhooks/alipay/ali1\nsign_type=RSA2\nversion=1.0\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	a = newAdapter(t, "", func(c *Config) { c.QRProductCode = "QR_CODE_OFFLINE" })
	in := testIntent(MethodQR)
	in.NotifyURL = ""
	got, err = a.Compose(in)
	if err != nil || bizOf(t, got)["product_code"] != "QR_CODE_OFFLINE" || strings.Contains(string(got), "notify_url") {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestS12_Subjects: any text that an order may have is sent in a form that Alipay
// takes, and what it takes is left as it is.
func TestS12_Subjects(t *testing.T) {
	a := newAdapter(t, "", nil)
	for in, want := range map[string]string{
		"a/b=c&d": "a／b＝c＆d", "茶🍵": "茶🍵", `"quoted" \ <b>`: `"quoted" \ <b>`, "line\nbreak\x00": "line break ", "   ": "order-1", "\u200b": "order-1", "\xff": "order-1",
	} {
		i := testIntent(MethodPage)
		i.Subject = in
		got, err := a.Compose(i)
		if err != nil || bizOf(t, got)["subject"] != want {
			t.Errorf("%q: %v %q, want %q", in, err, bizOf(t, got)["subject"], want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		i := testIntent(MethodPage)
		i.Subject = rapid.String().Draw(t, "subject")
		got, err := a.Compose(i)
		if err != nil {
			t.Fatal(err)
		}
		s := bizOf(t, got)["subject"]
		if s == "" || strings.ContainsAny(s, "/=&\n\x00") || !utf8.ValidString(s) || utf8.RuneCountInString(s) > 256 {
			t.Fatalf("%q becomes %q", i.Subject, s)
		}
		p := payonce.Payment{Request: got, Number: i.Number, Method: MethodPage, DeadAt: i.DeadAt}
		if _, err := a.Sign(p); err != nil {
			t.Fatalf("what was composed is not signed: %v", err)
		}
	})
}

// TestZ02_Midnight: half a minute around both midnights, the expiry is the day
// that it is in China.
func TestZ02_Midnight(t *testing.T) {
	a := newAdapter(t, "", nil)
	for at, want := range map[string]string{
		"2026-01-01T15:59:30Z": "2026-01-01 23:59:30", "2026-01-01T16:00:30Z": "2026-01-02 00:00:30",
		"2026-01-01T23:59:30Z": "2026-01-02 07:59:30", "2026-01-02T00:00:30Z": "2026-01-02 08:00:30", "2026-12-31T16:00:00.000001Z": "2027-01-01 00:00:01",
	} {
		in := testIntent(MethodQR)
		var err error
		if in.DeadAt, err = time.Parse(time.RFC3339Nano, at); err != nil {
			t.Fatal(err)
		}
		got, err := a.Compose(in)
		if err != nil || bizOf(t, got)["time_expire"] != want {
			t.Errorf("%s is %q, want %q (%v)", at, bizOf(t, got)["time_expire"], want, err)
		}
	}
}

// TestA04_TotalAmount: two decimals, no exponent, no grouping, over the range.
func TestA04_TotalAmount(t *testing.T) {
	a := newAdapter(t, "", nil)
	for n, want := range map[payonce.Amount]string{1: "0.01", 10: "0.10", 100: "1.00", 1990: "19.90", 123456789: "1234567.89", 10_000_000_000: "100000000.00"} {
		in := testIntent(MethodQR)
		in.Amount = n
		got, err := a.Compose(in)
		if err != nil || bizOf(t, got)["total_amount"] != want {
			t.Errorf("%d: %v", n, err)
		}
	}
}
