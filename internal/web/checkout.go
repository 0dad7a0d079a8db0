package web

import (
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"rsc.io/qr"

	"github.com/payonce/payonce"
)

// checkoutData is what the checkout's templates show.
type checkoutData struct {
	*view
	Token   string
	Choices []Choice
	Notice  string // key of a text, "" for none
	QR      template.HTML
	Test    bool
}

// ChoiceID is the value of a choice in the form.
func (checkoutData) ChoiceID(c Choice) string { return c.id() }

// Whole reports whether the page's next step is a form that leaves us.
func (d checkoutData) Whole() bool { return d.Action != nil && d.Action.Type == "form" }

// OpenCode is where a code leads that a payer without the channel's app can
// follow, which exists in the test environment alone; "" for nowhere.
func (d checkoutData) OpenCode() string {
	if !d.Test || d.Action == nil {
		return ""
	}
	return webAddress(d.Action.QRCode)
}

func webAddress(s string) string {
	if u, err := url.Parse(s); err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") {
		return s
	}
	return ""
}

// Refresh reports whether a page without script renews itself.
func (d checkoutData) Refresh() bool { return !d.Final() && !d.MayPay() }

// checkout shows the page. Coming back from a channel leads here too: whatever
// the channel added to the address is not looked at.
func (p *pages) checkout(w http.ResponseWriter, r *http.Request) {
	d, ok := p.openCheckout(w, r)
	if !ok {
		return
	}
	if d.Whole() {
		w.Header().Set("Content-Security-Policy", policy(formTargets(d.Action.URL)))
	}
	p.page(w, r, http.StatusOK, "checkout", "checkout.js", d)
}

// formTargets are the sources that a channel's form may go to. The channel sends
// the browser on from the form's address to other hosts of its own, which
// browsers hold against the same policy, so every site with https is allowed; a
// simulator without https is allowed by name.
func formTargets(address string) string {
	if u, err := url.Parse(address); err == nil && u.Scheme == "http" && u.Host != "" {
		return "'self' https: http://" + u.Host
	}
	return "'self' https:"
}

func (p *pages) checkoutState(w http.ResponseWriter, r *http.Request) {
	if d, ok := p.openCheckout(w, r); ok {
		p.sendCheckout(w, r, d)
	}
}

// checkoutPay is the pay button. It answers with the state that follows,
// whatever became of the wish: what a page shows comes from the books alone.
func (p *pages) checkoutPay(w http.ResponseWriter, r *http.Request) {
	d, ok := p.openCheckout(w, r)
	if !ok {
		return
	}
	key := d.Order.Key
	wish, err := p.readWish(r, d.view)
	if err == nil && d.Phase != phaseUnavailable {
		_, err = p.pay(r.Context(), key, wish, p.Signer.intentKey(key, wish), p.Signer.CheckoutURL(key))
	}
	if unexpected(err) {
		p.Logger.Error("checkout: pay", "error", err)
	}
	if !scripted(r) {
		to := "/checkout/" + d.Token + "?lang=" + language(r)
		if n := notice(err); n != "" {
			to += "&notice=" + n
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	if d, ok = p.openCheckout(w, r); ok {
		d.Notice = notice(err)
		p.sendCheckout(w, r, d)
	}
}

func (p *pages) sendCheckout(w http.ResponseWriter, r *http.Request, d *checkoutData) {
	s := state{Phase: string(d.Phase), Final: d.Final(), Quick: d.Phase == phaseConfirming || d.Phase == phaseWaiting,
		Notice: d.Notice, Whole: d.Whole()}
	p.part(w, r, "checkout-panel", s, d)
}

// openCheckout reads the order that the address names, or sends the error page.
func (p *pages) openCheckout(w http.ResponseWriter, r *http.Request) (*checkoutData, bool) {
	token := r.PathValue("token")
	key, ok := p.Signer.order(token)
	if !ok {
		p.page(w, r, http.StatusNotFound, "message", "", "not-found")
		return nil, false
	}
	o, err := p.find(r.Context(), key)
	switch {
	case err != nil:
		p.Logger.Error("checkout: read order", "error", err)
		p.page(w, r, http.StatusServiceUnavailable, "message", "", "busy")
		return nil, false
	case o == nil:
		p.page(w, r, http.StatusNotFound, "message", "", "not-found")
		return nil, false
	}
	d := &checkoutData{view: look(o, p.Now()), Token: token, Choices: p.choices(o.Order), Test: key.Environment == payonce.Test}
	if d.Payment != nil && d.Payment.Status.Live() {
		p.Engine.Ask(d.Payment)
	}
	d.Notice = askedNotice(r, d.Phase)
	d.QR = p.draw(d.Action)
	return d, true
}

// askedNotice is the notice that an address asks for: after a form without
// script, or of a page that goes on showing it while its phase lasts.
func askedNotice(r *http.Request, now phase) string {
	q := r.URL.Query()
	if shown := q.Get("phase"); shown != "" && shown != string(now) {
		return ""
	}
	switch n := q.Get("notice"); n {
	case "stale", "earlier-live", "cannot-pay", "busy":
		return n
	}
	return ""
}

// draw returns the picture of a code, nothing for another action.
func (p *pages) draw(a *payonce.Action) template.HTML {
	if a == nil || a.Type != "qr_code" {
		return ""
	}
	image, err := qrImage(a.QRCode)
	if err != nil {
		p.Logger.Error("draw QR code", "error", err)
	}
	return image
}

// qrImage draws a QR code as SVG, a path of one square for each dark module.
func qrImage(content string) (template.HTML, error) {
	code, err := qr.Encode(content, qr.M)
	if err != nil {
		return "", err
	}
	const quiet = 4
	var b strings.Builder
	size := strconv.Itoa(code.Size + 2*quiet)
	b.WriteString(`<svg class="qr" role="img" aria-label="QR" viewBox="0 0 ` + size + ` ` + size + `" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h` + size + `v` + size + `H0z"/><path fill="#000" d="`)
	for y := range code.Size {
		for x := range code.Size {
			if code.Black(x, y) {
				b.WriteString("M" + strconv.Itoa(x+quiet) + " " + strconv.Itoa(y+quiet) + "h1v1h-1z")
			}
		}
	}
	b.WriteString(`"/></svg>`)
	return template.HTML(b.String()), nil // only numbers of ours are in it
}
