package web

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/payonce/payonce"
)

// phases makes an order in each phase.
func phases() map[phase]func(*rig) {
	one := func(p *payonce.Payment) func(*rig) {
		return func(r *rig) { r.orders[order].Payments = []*payonce.Payment{p} }
	}
	waiting := attempt(payonce.Pending)
	waiting.Action = &payonce.Action{Type: "qr_code", QRCode: "https://qr.example/x"}
	return map[phase]func(*rig){
		phaseReady: func(*rig) {}, phaseDeclined: one(attempt(payonce.Failed)), phaseCancelled: one(attempt(payonce.Cancelled)),
		phaseWaiting: one(waiting), phaseConfirming: one(attempt(payonce.Unknown)),
		phasePaid: func(r *rig) {
			r.orders[order].Order.Status = payonce.OrderPaid
			r.orders[order].Order.AmountSurplus = 1999
		},
		phaseClosed:      func(r *rig) { r.orders[order].Order.Status = payonce.OrderClosed },
		phaseUnavailable: func(r *rig) { r.orders[order].Order.Policy = payonce.PolicySplit },
	}
}

func TestPagesKeepAStrictPolicy(t *testing.T) {
	for ph, set := range phases() {
		r := newRig(t, openOrder(), &Shop{Process: "1"})
		set(r)
		w := r.get(r.path)
		if !strings.Contains(w.Body.String(), `data-phase="`+string(ph)+`"`) {
			t.Errorf("%s: the page shows another phase", ph)
		}
		checkHeaders(t, string(ph), w)
		checkNothingInline(t, string(ph), w.Body.String())
	}
	r := newRig(t, openOrder(), &Shop{Process: "1"})
	for _, path := range []string{"/shop", "/checkout/forged", "/assets/checkout.js", "/nowhere"} {
		checkHeaders(t, path, r.get(path))
	}
}

func checkHeaders(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	csp := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "form-action 'self';", "base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("%s: the policy lacks %s: %s", what, want, csp)
		}
	}
	if strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
		t.Errorf("%s: the policy is too wide: %s", what, csp)
	}
	if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Referrer-Policy") != "same-origin" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%s: headers %v", what, w.Header())
	}
}

// checkNothingInline finds what the policy would block or what comes from
// elsewhere.
func checkNothingInline(t *testing.T, what, page string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			tok := z.Token()
			src := ""
			for _, a := range tok.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
					t.Errorf("%s: <%s %s=…>", what, tok.Data, a.Key)
				}
				if a.Key == "src" || tok.Data == "link" && a.Key == "href" {
					src = a.Val
				}
			}
			if tok.Data == "style" || (tok.Data == "script" || tok.Data == "link") && !strings.HasPrefix(src, "/assets/") {
				t.Errorf("%s: <%s> from %q", what, tok.Data, src)
			}
		}
	}
}

func TestOtherSitesCannotPressOurButtons(t *testing.T) {
	r := newRig(t, openOrder(), &Shop{Kill: func() { t.Error("killed by another site") }})
	for _, path := range []string{r.path + "/pay", "/shop/orders", "/shop/kill", "/shop/fault", "/shop/orders/A-1/pay"} {
		for _, h := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "same-site"}} {
			if w := r.post(path, nil, h...); w.Code != http.StatusForbidden {
				t.Errorf("%s with %v: %d", path, h, w.Code)
			}
		}
	}
	if len(r.paid) != 0 {
		t.Error("the engine was asked")
	}
	if w := r.post(r.path+"/pay", nil, "Sec-Fetch-Site", "same-origin"); w.Code != http.StatusSeeOther {
		t.Errorf("our own page: %d", w.Code)
	}
}

// Browsers hold the redirects that follow a form against form-action too, and a
// channel's gateway sends the payer on to other hosts of its own.
func TestTheChannelsFormIsAllowedWhereverItLeads(t *testing.T) {
	for address, want := range map[string]string{
		"https://bank.example/pay?x=1":     "form-action 'self' https:;",
		"http://127.0.0.1:9090/gateway.do": "form-action 'self' https: http://127.0.0.1:9090;",
		"javascript:alert(1)":              "form-action 'self' https:;",
	} {
		o := openOrder()
		p := attempt(payonce.Pending)
		p.Action = &payonce.Action{Type: "form", URL: address, Method: "POST", Fields: map[string]string{"a": `"><script>`}}
		o.Payments = []*payonce.Payment{p}
		r := newRig(t, o, nil)
		w := r.get(r.path)
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, want) {
			t.Errorf("%s: policy %s", address, csp)
		}
		checkNothingInline(t, "form", w.Body.String())
		if strings.Contains(w.Body.String(), "javascript:") {
			t.Error("a form may run a script")
		}
		if body := r.get(r.path + "/state").Body.String(); !strings.Contains(body, `"whole":true`) {
			t.Errorf("a page without the form's policy is not told to load anew: %s", body)
		}
	}
}

func TestE01_NoPageCallsAnUnknownOutcomeFailed(t *testing.T) {
	want := map[string]string{"en": "Confirming the result, please do not pay again", "zh": "支付结果确认中，请勿重复付款"}
	for ph, set := range phases() {
		for lang, words := range want {
			r := newRig(t, openOrder(), nil)
			set(r)
			body := r.get(r.path + "?lang=" + lang).Body.String()
			panel := body[strings.Index(body, `data-test="phase"`):]
			if strings.Contains(strings.ToLower(panel), "fail") || strings.Contains(panel, "失败") {
				t.Errorf("%s in %s says failed", ph, lang)
			}
			if got := strings.Contains(panel, words); got != (ph == phaseConfirming) {
				t.Errorf("%s in %s: confirming words shown: %v", ph, lang, got)
			}
		}
	}
}

func TestLanguageFollowsAddressThenBrowser(t *testing.T) {
	for _, tc := range []struct{ query, accept, want string }{
		{"", "", "en"}, {"", "zh-CN,zh;q=0.9,en;q=0.8", "zh"}, {"", "de, en;q=0.5, zh;q=0.7", "zh"}, {"", "en-GB,zh;q=0.9", "en"},
		{"?lang=zh", "en", "zh"}, {"?lang=en", "zh", "en"}, {"?lang=xx", "zh", "zh"}, {"", "fr", "en"},
	} {
		req := httptest.NewRequest(http.MethodGet, "/"+tc.query, nil)
		req.Header.Set("Accept-Language", tc.accept)
		if got := language(req); got != tc.want {
			t.Errorf("%q %q: %s, want %s", tc.query, tc.accept, got, tc.want)
		}
	}
}

func TestEveryTextIsThereInBothLanguages(t *testing.T) {
	for key, words := range texts {
		if words[0] == "" || words[1] == "" {
			t.Errorf("%s lacks a language", key)
		}
	}
	keys := regexp.MustCompile(`\.T "([^"]+)"|"[a-z]+" "([a-z-]+)"\)\}\}`)
	entries, err := files.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, e := range entries {
		b, err := files.ReadFile("templates/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range keys.FindAllStringSubmatch(string(b), -1) {
			used++
			if key := m[1] + m[2]; texts[key][0] == "" {
				t.Errorf("%s uses %q, which has no text", e.Name(), key)
			}
		}
	}
	if used < 30 {
		t.Errorf("only %d uses found: the search is wrong", used)
	}
	for ph := range phases() {
		for _, suffix := range []string{"", "-more"} {
			if (ph != phaseReady || suffix == "") && texts[string(ph)+suffix][0] == "" {
				t.Errorf("phase %s has no text %q", ph, suffix)
			}
		}
	}
}

func TestAssetsAreCachedByVersionOnly(t *testing.T) {
	r := newRig(t, openOrder(), nil)
	page := r.get(r.path).Body.String()
	src := regexp.MustCompile(`src="(/assets/checkout\.js\?v=[0-9a-f]+)"`).FindStringSubmatch(page)
	if src == nil {
		t.Fatal("the page has no script")
	}
	w := r.get(src[1])
	if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := r.get("/assets/..%2ftext.go"); w.Code != http.StatusNotFound {
		t.Errorf("a file beside the assets: %d", w.Code)
	}
}
