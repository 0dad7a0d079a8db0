package sim

import (
	"errors"
	"html/template"
	"net/http"
	"slices"

	"github.com/payonce/payonce/internal/sim/core"
)

// page is what a QR text or a redirect leads the payer to. It works without
// scripts.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Payment</title><style>
body{font:16px/1.5 system-ui,sans-serif;margin:0;display:grid;place-items:center;min-height:100vh;background:#f5f6f8;color:#1c2530}
main{background:#fff;border-radius:12px;padding:32px;width:min(320px,80vw);text-align:center;box-shadow:0 1px 4px #0002}
p.amount{font-size:28px;margin:8px 0 24px}button{font:inherit;border:0;border-radius:8px;padding:12px;width:100%;cursor:pointer}
button.pay{background:#0a6cff;color:#fff}details{margin-top:24px;color:#667}details button{background:none;color:#667;padding:6px}
</style></head><body><main>
{{if .Open}}<p>Test payment 测试支付</p><p class="amount">{{.Amount}}</p>
<form method="post"><button class="pay" name="outcome" value="paid">Pay 付款</button>
<details><summary>More 更多</summary>{{if .Unopened}}<button name="outcome" value="scanned">Log in, do not pay yet</button>{{end}}<button name="outcome" value="declined">Let the bank decline</button>
<button name="outcome" value="abandoned">Leave without paying</button></details></form>
{{else if .Paid}}<p class="amount">{{.Amount}}</p><p>Payment received. You can close this page.<br>付款已收到，可以关闭此页面。</p>
{{else}}<p>There is nothing to pay here. You can close this page.<br>此处无需付款，可以关闭此页面。</p>{{end}}
</main></body></html>
`))

func (s *Sim) pageOf(rw http.ResponseWriter, r *http.Request) (channel, core.PageState, bool) {
	ch, err := s.channelOf(r.PathValue("channel"))
	var state core.PageState
	if err == nil {
		state, err = ch.Page(r.PathValue("id"))
	}
	if err != nil {
		rw.WriteHeader(statusOf(err))
		_ = page.Execute(rw, core.PageState{}) // a client that is gone needs no answer
		return nil, state, false
	}
	return ch, state, true
}

func (s *Sim) showPage(rw http.ResponseWriter, r *http.Request) {
	pageHeaders(rw)
	if _, state, ok := s.pageOf(rw, r); ok {
		_ = page.Execute(rw, state)
	}
}

// pressButton plays the payer and leads back to the shop. A second press
// changes nothing.
func (s *Sim) pressButton(rw http.ResponseWriter, r *http.Request) {
	pageHeaders(rw)
	ch, _, ok := s.pageOf(rw, r)
	if !ok {
		return
	}
	r.Body = http.MaxBytesReader(rw, r.Body, maxControlBody)
	outcome := r.PostFormValue("outcome")
	if !slices.Contains(core.Outcomes, outcome) {
		outcome = "paid"
	}
	if err := ch.PayPage(r.PathValue("id"), outcome); err != nil && !errors.Is(err, core.ErrNotPayable) {
		rw.WriteHeader(statusOf(err))
		return
	}
	state, err := ch.Page(r.PathValue("id"))
	if err != nil {
		rw.WriteHeader(statusOf(err))
		return
	}
	to := state.ReturnURL
	if to == "" {
		to = r.URL.Path
	}
	http.Redirect(rw, r, to, http.StatusSeeOther)
}

func pageHeaders(rw http.ResponseWriter) {
	h := rw.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
}
