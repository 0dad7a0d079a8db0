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

// Refresh reports whether a page without script renews itself.
func (d checkoutData) Refresh() bool { return !d.Final() && !d.MayPay() }

// checkout shows the page. Coming back from a channel leads here too: whatever
// the channel added to the address is not looked at.
func (p *pages) checkout(w http.ResponseWriter, r *http.Request) {
	d, ok := p.openCheckout(w, r)
	if !ok {
		return
	}
	if a := d.Action; a != nil && a.Type == "form" {
		if u, err := url.Parse(a.URL); err == nil && u.Host != "" {
			w.Header().Set("Content-Security-Policy", policy("'self' "+u.Scheme+"://"+u.Host))
		}
	}
	p.page(w, r, http.StatusOK, "checkout", "checkout.js", d)
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
	s := state{Phase: string(d.Phase), Final: d.Final(), Quick: d.Phase == phaseConfirming || d.Phase == phaseWaiting}
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
	d := &checkoutData{view: look(o, p.Now()), Token: token, Choices: p.Choices(key), Test: key.Environment == payonce.Test}
	if d.Payment != nil && d.Payment.Status.Live() {
		p.Engine.Ask(d.Payment)
	}
	switch n := r.URL.Query().Get("notice"); n {
	case "stale", "earlier-live", "cannot-pay", "busy": // of a form without script
		d.Notice = n
	}
	if d.Action != nil && d.Action.Type == "qr_code" {
		if d.QR, err = qrImage(d.Action.QRCode); err != nil {
			p.Logger.Error("checkout: draw QR code", "error", err)
		}
	}
	return d, true
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
