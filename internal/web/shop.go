package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/engine"
	"github.com/payonce/payonce/internal/store"
)

// Shop is what the demo shop is made of. It belongs to a demo alone: it can kill
// the service and break the channel.
type Shop struct {
	Scope store.Scope
	// Books returns the channel's own account of what it took and was asked.
	Books func(context.Context) (*Books, error)
	// BooksURL is where the payer's browser finds the same.
	BooksURL string
	// Fault makes the channel misbehave once.
	Fault func(ctx context.Context, channel, operation, fault string, delay time.Duration) error
	// Kill ends this process at once, as a power cut would.
	Kill func()
	// Process names this process, so that a restart is seen.
	Process string
}

// Books is the channel's side of the story.
type Books struct {
	Charges []BookCharge `json:"charges"`
	Calls   []BookCall   `json:"calls"`
}

// BookCharge is one object on the channel's books.
type BookCharge struct {
	Number    string           `json:"number"`
	PaymentID string           `json:"payment_id"`
	Amount    payonce.Amount   `json:"amount"`
	Currency  payonce.Currency `json:"currency"`
	Status    string           `json:"status"`
}

// Took reports whether the channel has taken money for it.
func (c BookCharge) Took() bool {
	return c.Status == "paid" || c.Status == "refunded" || c.Status == "partially_refunded"
}

// BookCall counts the requests about one number.
type BookCall struct {
	Operation string `json:"operation"`
	Number    string `json:"number"`
	Count     int    `json:"count"`
}

const (
	recentOrders = 20
	booksWithin  = 2 * time.Second
	slowAnswer   = 4 * time.Second
)

// shopCurrencies are offered for a demo order: with two decimals, with none,
// with three.
var shopCurrencies = []payonce.Currency{"USD", "EUR", "CNY", "JPY", "KWD"}

func (p *pages) routeShop(mux *http.ServeMux) {
	mux.HandleFunc("GET /shop", p.shop)
	mux.HandleFunc("POST /shop/orders", p.shopOrder)
	mux.HandleFunc("GET /shop/orders", p.shop) // the address of a refused order, asked for again
	mux.HandleFunc("GET /shop/orders/{order}", p.shopStory)
	mux.HandleFunc("GET /shop/orders/{order}/state", p.shopState)
	mux.HandleFunc("POST /shop/orders/{order}/pay", p.shopPay)
	mux.HandleFunc("POST /shop/fault", p.shopFault)
	mux.HandleFunc("POST /shop/kill", p.shopKill)
}

type shopData struct {
	Orders     []*store.OrderWithPayments
	Currencies []payonce.Currency
	Notice     string
	BooksURL   string
	Process    string

	// What the form holds: after a refusal what was typed.
	Subject, Amount string
	Currency        payonce.Currency
}

func (p *pages) shop(w http.ResponseWriter, r *http.Request) { p.showShop(w, r, http.StatusOK, "") }

func (p *pages) showShop(w http.ResponseWriter, r *http.Request, status int, notice string) {
	orders, err := p.Reader.Orders(r.Context(), p.Shop.Scope, store.OrderFilter{Limit: recentOrders})
	if err != nil {
		p.Logger.Error("shop: list orders", "error", err)
		status, notice = http.StatusServiceUnavailable, "busy"
	}
	d := shopData{Orders: orders, Currencies: shopCurrencies, Notice: notice, BooksURL: p.Shop.BooksURL, Process: p.Shop.Process}
	d.Subject, d.Amount, d.Currency = text(language(r), "sample"), "19.99", shopCurrencies[0]
	if r.Method == http.MethodPost {
		d.Subject, d.Amount, d.Currency = r.PostFormValue("subject"), r.PostFormValue("amount"), payonce.Currency(r.PostFormValue("currency"))
	}
	p.page(w, r, status, "shop", "shop.js", d)
}

func (p *pages) shopOrder(w http.ResponseWriter, r *http.Request) {
	currency := payonce.Currency(r.PostFormValue("currency"))
	amount, ok := parseMoney(r.PostFormValue("amount"), currency)
	subject := strings.TrimSpace(r.PostFormValue("subject"))
	if !ok || !payonce.ValidSubject(subject) || !slices.Contains(shopCurrencies, currency) {
		p.showShop(w, r, http.StatusBadRequest, "bad-order")
		return
	}
	k := p.orderKey("demo-" + strings.ToLower(rand.Text()[:10]))
	if _, err := p.Engine.CreateOrder(r.Context(), engine.OrderRequest{Order: k, Amount: amount, Currency: currency, Subject: subject}); err != nil {
		p.Logger.Error("shop: create order", "error", err)
		p.showShop(w, r, http.StatusServiceUnavailable, "busy")
		return
	}
	http.Redirect(w, r, "/shop/orders/"+k.OrderNo+"?lang="+language(r), http.StatusSeeOther)
}

func (p *pages) orderKey(no string) payonce.OrderKey {
	return payonce.OrderKey{Merchant: p.Shop.Scope.Merchant, Environment: p.Shop.Scope.Environment, OrderNo: no}
}

// parseMoney reads an amount in major units as integer minor units: at most as
// many decimals as the currency has, no sign, no exponent.
func parseMoney(text string, c payonce.Currency) (payonce.Amount, bool) {
	exponent, ok := c.Exponent()
	if !ok {
		return 0, false
	}
	whole, decimals, _ := strings.Cut(strings.TrimSpace(text), ".")
	if whole == "" || len(decimals) > exponent || strings.ContainsAny(whole+decimals, "+-") {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+decimals+strings.Repeat("0", exponent-len(decimals)), 10, 64)
	a := payonce.Amount(n)
	return a, err == nil && a.Valid()
}

// story is an order told from three sides.
type story struct {
	*view
	Payments   []*payonce.Payment
	Choices    []Choice
	Charges    []BookCharge
	Took       int
	Calls      []BookCall
	QR         template.HTML
	BooksGone  bool
	BooksURL   string
	Checkout   string
	Notice     string
	Process    string
	Verdict    string // key of a text
	VerdictBad bool
}

// OpenCode is where the shown code leads, "" for nowhere.
func (s *story) OpenCode() string {
	if s.Action == nil {
		return ""
	}
	return webAddress(s.Action.QRCode)
}

// ChoiceID is the value of a choice in the form.
func (story) ChoiceID(c Choice) string { return c.id() }

func (p *pages) shopStory(w http.ResponseWriter, r *http.Request) {
	if s, ok := p.openStory(w, r); ok {
		switch n := r.URL.Query().Get("notice"); n {
		case "armed-lose", "armed-slow", "armed-failed", "stale", "earlier-live", "cannot-pay", "busy":
			s.Notice = n
		}
		p.page(w, r, http.StatusOK, "story", "shop.js", s)
	}
}

func (p *pages) shopState(w http.ResponseWriter, r *http.Request) {
	if s, ok := p.openStory(w, r); ok {
		p.part(w, r, "story-panel", state{Phase: string(s.Phase), Quick: true}, s)
	}
}

func (p *pages) openStory(w http.ResponseWriter, r *http.Request) (*story, bool) {
	k := p.orderKey(r.PathValue("order"))
	var o *store.OrderWithPayments
	var err error
	if payonce.ValidOrderNo(k.OrderNo) {
		o, err = p.find(r.Context(), k)
	}
	switch {
	case err != nil:
		p.Logger.Error("shop: read order", "error", err)
		p.page(w, r, http.StatusServiceUnavailable, "message", "", "busy")
		return nil, false
	case o == nil:
		p.page(w, r, http.StatusNotFound, "message", "", "not-found")
		return nil, false
	}
	s := &story{view: look(o, p.Now()), Payments: o.Payments, Choices: p.choices(o.Order), BooksURL: p.Shop.BooksURL,
		Checkout: p.Signer.CheckoutURL(k), Process: p.Shop.Process}
	s.QR = p.draw(s.Action)
	p.readBooks(r.Context(), s)
	s.judge()
	return s, true
}

// readBooks takes from the channel's books what is about this order's numbers.
func (p *pages) readBooks(ctx context.Context, s *story) {
	ctx, cancel := context.WithTimeout(ctx, booksWithin)
	defer cancel()
	b, err := p.Shop.Books(ctx)
	if err != nil {
		s.BooksGone = true
		return
	}
	mine := map[string]bool{}
	for _, pay := range s.Payments {
		mine[pay.Number] = true
	}
	for _, c := range b.Charges {
		if mine[c.Number] {
			s.Charges = append(s.Charges, c)
			if c.Took() {
				s.Took++
			}
		}
	}
	for _, c := range b.Calls {
		if mine[c.Number] {
			s.Calls = append(s.Calls, c)
		}
	}
}

// judge compares the two sides in one sentence.
func (s *story) judge() {
	switch {
	case s.Took > 1:
		s.Verdict, s.VerdictBad = "verdict-more", true
	case s.Phase == phasePaid && s.Took == 1:
		s.Verdict = "verdict-one"
	case s.Phase == phaseWaiting && s.Took == 0:
		s.Verdict = "verdict-payer"
	case s.Phase == phaseConfirming || s.Took == 1:
		s.Verdict = "verdict-wait"
	default:
		s.Verdict = "verdict-none"
	}
}

// shopPay is the shop's pay button. With fresh=1 every click brings a key of its
// own, as a shop without any care would.
func (p *pages) shopPay(w http.ResponseWriter, r *http.Request) {
	s, ok := p.openStory(w, r)
	if !ok {
		return
	}
	k := s.Order.Key
	wish, err := p.readWish(r, s.view)
	if err == nil {
		key := p.Signer.intentKey(k, wish)
		if r.PostForm.Get("fresh") == "1" {
			key = rand.Text()
		}
		_, err = p.pay(r.Context(), k, wish, key, p.Signer.base+"/shop/orders/"+k.OrderNo)
	}
	if unexpected(err) {
		p.Logger.Error("shop: pay", "error", err)
	}
	p.backToStory(w, r, k.OrderNo, notice(err))
}

// backToStory answers a button: with the state for the script, with the page
// for a plain form.
func (p *pages) backToStory(w http.ResponseWriter, r *http.Request, orderNo, notice string) {
	if scripted(r) {
		answer := map[string]string{"notice": notice, "text": ""}
		if notice != "" {
			answer["text"] = text(language(r), notice)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client may be gone
		return
	}
	to := "/shop/orders/" + orderNo + "?lang=" + language(r)
	if notice != "" {
		to += "&notice=" + notice
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// moneyCalls are the simulator's names of the call in which a channel commits
// itself: the one that is worth breaking.
var moneyCalls = map[string]string{"stripe": "confirm", "alipay": "create"}

// shopFault arms one of two accidents at the money call of the channel that is
// chosen on the page, the first one where nothing is chosen.
func (p *pages) shopFault(w http.ResponseWriter, r *http.Request) {
	orderNo := r.PostFormValue("order")
	if !payonce.ValidOrderNo(orderNo) {
		p.page(w, r, http.StatusBadRequest, "message", "", "not-found")
		return
	}
	fault, delay, note := "lose_response", time.Duration(0), "armed-lose"
	if r.PostForm.Get("fault") == "slow" {
		fault, delay, note = "delay", slowAnswer, "armed-slow"
	}
	choices := p.Choices(p.orderKey(orderNo))
	err := errors.New("no channel")
	if len(choices) > 0 {
		c := choices[0]
		if i := slices.IndexFunc(choices, func(c Choice) bool { return c.id() == r.PostForm.Get("choice") }); i >= 0 {
			c = choices[i]
		}
		err = p.Shop.Fault(r.Context(), c.Channel, moneyCalls[c.Channel], fault, delay)
	}
	if err != nil {
		p.Logger.Error("shop: arm fault", "error", err)
		note = "armed-failed"
	}
	p.backToStory(w, r, orderNo, note)
}

// shopKill answers first, so that the browser has a page to go on with.
func (p *pages) shopKill(w http.ResponseWriter, r *http.Request) {
	orderNo := r.PostFormValue("order")
	if !payonce.ValidOrderNo(orderNo) {
		p.page(w, r, http.StatusBadRequest, "message", "", "not-found")
		return
	}
	p.backToStory(w, r, orderNo, "killed")
	_ = http.NewResponseController(w).Flush() // nothing is lost when it cannot
	p.Shop.Kill()
}
