package alipaysim

import (
	"fmt"
	"strings"
	"time"

	"github.com/payonce/payonce/internal/sim/core"
)

// Statuses of a trade.
const (
	waiting  = "WAIT_BUYER_PAY"
	success  = "TRADE_SUCCESS"
	finished = "TRADE_FINISHED"
	closed   = "TRADE_CLOSED"
)

const (
	day = 24 * time.Hour
	// longestLife bounds time_expire and timeout_express.
	longestLife = 15 * day
	// shortestLife is the least distance of time_expire.
	shortestLife = time.Minute
	// codeLife is the most that a QR code lives, whatever the order says.
	codeLife = 2 * time.Hour
	// counterLife is the default life of a face-to-face order.
	counterLife = 3 * time.Hour
	// refundWindow is how long a paid trade can be refunded.
	refundWindow = 365 * day
)

// terms are what the merchant ordered. Amounts are in fen, times are virtual
// Unix seconds.
type terms struct {
	Number    string `json:"number"` // out_trade_no
	Amount    int64  `json:"amount"`
	Subject   string `json:"subject"`
	Body      string `json:"body,omitempty"`
	Code      string `json:"code,omitempty"`   // product_code
	Method    string `json:"method,omitempty"` // API that ordered
	Buyer     string `json:"buyer,omitempty"`  // create only
	Passback  string `json:"passback,omitempty"`
	NotifyURL string `json:"notify_url,omitempty"`
	ReturnURL string `json:"return_url,omitempty"`
	Charset   string `json:"charset,omitempty"`
	Until     int64  `json:"until"` // an unpaid trade closes then
}

// same tells whether a repeated number means the same order. Addresses and
// expiry do not count: those of the first order rule.
func (t terms) same(u terms) bool {
	return t.Amount == u.Amount && t.Subject == u.Subject && t.Body == u.Body && t.Code == u.Code
}

// offer is something payable that Alipay has no trade for yet: a QR code, or
// a form that a browser has opened.
type offer struct {
	Seq     int64  `json:"seq"`
	ID      string `json:"id"`
	Terms   terms  `json:"terms"`
	Created int64  `json:"created"`
	Until   int64  `json:"until"`           // it opens nothing afterwards
	Trade   string `json:"trade,omitempty"` // what it has led to
}

// trade is a trade; ID is its trade_no.
type trade struct {
	Seq      int64    `json:"seq"`
	ID       string   `json:"id"`
	Terms    terms    `json:"terms"`
	Status   string   `json:"status"`
	Created  int64    `json:"created"`
	Paid     int64    `json:"paid,omitempty"` // total that was paid
	PaidAt   int64    `json:"paid_at,omitempty"`
	ClosedAt int64    `json:"closed_at,omitempty"`
	Declined bool     `json:"declined,omitempty"` // the last try to pay failed
	Refunds  []refund `json:"refunds,omitempty"`
}

type refund struct {
	Number string `json:"number"` // out_request_no
	Amount int64  `json:"amount"`
	At     int64  `json:"at"`
}

func (t *trade) refunded() int64 {
	var sum int64
	for _, r := range t.Refunds {
		sum += r.Amount
	}
	return sum
}

func (t *trade) refundOf(number string) *refund {
	for n := range t.Refunds {
		if t.Refunds[n].Number == number {
			return &t.Refunds[n]
		}
	}
	return nil
}

// total is what the trade is about: what was paid, else what is due.
func (t *trade) total() int64 {
	if t.Paid > 0 {
		return t.Paid
	}
	return t.Terms.Amount
}

// coupon is the part of a paid trade that a voucher of the merchant bore: one
// fen, so that what the buyer paid and what the merchant received are never
// mistaken for the total.
func (t *trade) coupon() int64 {
	if t.Paid > 1 {
		return 1
	}
	return 0
}

// current is the newest trade of a number, or nil. Only inside Update.
func (a *Alipay) current(c *call, number string) *trade {
	ids := a.tradesOf[number]
	if len(ids) == 0 {
		return nil
	}
	t := a.trades.Get(ids[len(ids)-1])
	a.settle(c, t)
	return t
}

// settle does what the virtual clock has made due.
func (a *Alipay) settle(c *call, t *trade) {
	switch now := a.now(); {
	case t.Status == waiting && now >= t.Terms.Until:
		a.closeTrade(c, t, "")
	case t.Status == success && now >= t.PaidAt+int64(refundWindow/time.Second):
		t.Status = finished
		a.trades.Put(t.ID, t)
		a.notify(c, t, finished, nil, "")
	}
}

// watch sets the timer of the next thing that time does to a trade.
func (a *Alipay) watch(t *trade) {
	var at int64
	switch t.Status {
	case waiting:
		at = t.Terms.Until
	case success:
		at = t.PaidAt + int64(refundWindow/time.Second)
	default:
		return
	}
	id := t.ID
	a.w.At(unix(at), func() {
		a.spontaneous(func(c *call) {
			if t := a.trades.Get(id); t != nil {
				a.settle(c, t)
			}
		})
	})
}

// spontaneous changes state without a request.
func (a *Alipay) spontaneous(fn func(c *call)) {
	c := &call{}
	pos := a.w.Update(func() { fn(c) })
	if err := a.w.Wait(pos); err != nil {
		a.w.Log.Error("the books cannot be written", "error", err)
		return
	}
	a.w.Start(c.posted)
}

// tradeNo is 28 digits as real ones: the Beijing day, 22001 and the rest.
func (a *Alipay) tradeNo() (string, int64) {
	a.w.ID("")
	seq := a.w.Sequence()
	return fmt.Sprintf("%s22001%s%010d", a.w.Now().In(beijing).Format("20060102"),
		a.w.Seed.Digits(fmt.Sprint("alipay trade ", seq), 5), seq), seq
}

// newTrade is the moment from which Alipay knows the number.
func (a *Alipay) newTrade(c *call, o terms) *trade {
	t := &trade{Terms: o, Status: waiting, Created: a.now()}
	t.ID, t.Seq = a.tradeNo()
	a.trades.Put(t.ID, t)
	a.indexTrade(t)
	a.watch(t)
	a.notify(c, t, waiting, nil, "")
	return t
}

// open plays the payer who scans or logs in: the trade of an offer, or the
// sub_code that the payer is shown.
func (a *Alipay) open(c *call, o *offer) (*trade, string) {
	t := a.current(c, o.Terms.Number)
	switch {
	case t == nil && a.now() >= o.Until:
		return nil, "ACQ.NOW_TIME_AFTER_EXPIRE_TIME_ERROR"
	case t == nil:
		t = a.newTrade(c, o.Terms)
	default:
		if sub := repeated(t, o.Terms); sub != "" {
			return nil, sub
		}
	}
	if o.Trade == "" {
		o.Trade = t.ID
		a.offers.Put(o.ID, o)
	}
	return t, ""
}

// repeated is what a number that already has a trade is refused with; "" when
// the trade goes on.
func repeated(t *trade, o terms) string {
	switch {
	case t.Status == success, t.Status == finished:
		return "ACQ.TRADE_HAS_SUCCESS"
	case t.Status == closed:
		return "ACQ.TRADE_HAS_CLOSE"
	case !t.Terms.same(o):
		return "ACQ.CONTEXT_INCONSISTENT"
	case t.Terms.Buyer != o.Buyer && o.Buyer != "":
		return "ACQ.TRADE_BUYER_NOT_MATCH"
	}
	return ""
}

func (a *Alipay) payTrade(c *call, t *trade, amount int64) {
	t.Status, t.Paid, t.PaidAt, t.ClosedAt, t.Declined = success, amount, a.now(), 0, false
	a.trades.Put(t.ID, t)
	a.watch(t)
	a.notify(c, t, success, nil, "")
}

func (a *Alipay) closeTrade(c *call, t *trade, notifyURL string) {
	t.Status, t.ClosedAt, t.Declined = closed, a.now(), false
	a.trades.Put(t.ID, t)
	a.notify(c, t, closed, nil, notifyURL)
}

// refundTrade books a refund; a full one closes the trade.
func (a *Alipay) refundTrade(c *call, t *trade, number string, amount int64) *refund {
	t.Refunds = append(t.Refunds, refund{Number: number, Amount: amount, At: a.now()})
	if t.refunded() == t.Paid {
		t.Status, t.ClosedAt = closed, a.now()
	}
	a.trades.Put(t.ID, t)
	r := &t.Refunds[len(t.Refunds)-1]
	a.notify(c, t, t.Status, r, "")
	return r
}

// newOffer books something payable that has no trade.
func (a *Alipay) newOffer(o terms, until int64) *offer {
	row := &offer{ID: a.w.ID(""), Terms: o, Created: a.now(), Until: until}
	row.Seq = a.w.Sequence()
	a.offers.Put(row.ID, row)
	a.indexOffer(row)
	return row
}

// standing is the newest offer of the same order that still opens, or nil.
func (a *Alipay) standing(o terms) *offer {
	ids := a.offersOf[o.Number]
	for n := len(ids) - 1; n >= 0; n-- {
		row := a.offers.Get(ids[n])
		if row.Terms.same(o) && row.Terms.Method == o.Method && a.now() < row.Until {
			return row
		}
	}
	return nil
}

// line is the books' view of a trade.
func (a *Alipay) line(t *trade) core.Charge {
	line := core.Charge{Channel: Channel, Number: t.Terms.Number, PaymentID: t.ID, Amount: t.total(), Currency: "CNY",
		Refunded: t.refunded(), Refunds: []core.Refund{}}
	for _, r := range t.Refunds {
		line.Refunds = append(line.Refunds, core.Refund{Number: r.Number, ID: t.ID + "-" + r.Number, Amount: r.Amount, Status: "succeeded"})
	}
	switch {
	case t.Paid > 0:
		at := unix(t.PaidAt)
		line.PaidAt = &at
		switch line.Refunded {
		case 0:
			line.Status = core.StatusPaid
		case t.Paid:
			line.Status = core.StatusRefunded
		default:
			line.Status = core.StatusPartiallyRefunded
		}
	case t.Status == closed:
		line.Status = core.StatusClosed
	case t.Declined:
		line.Status = core.StatusDeclined
	default:
		line.Status = core.StatusUnpaid
	}
	return line
}

// offerLine is the books' view of an offer; false for one that has become, or
// would become, a trade with a line of its own.
func (a *Alipay) offerLine(o *offer) (core.Charge, bool) {
	line := core.Charge{Channel: Channel, Number: o.Terms.Number, Amount: o.Terms.Amount, Currency: "CNY",
		Status: core.StatusCreated, Refunds: []core.Refund{}}
	ids := a.tradesOf[o.Terms.Number]
	switch {
	case o.Trade != "":
		return line, false
	case len(ids) > 0 && a.trades.Get(ids[0]).Terms.same(o.Terms):
		return line, false
	case len(ids) > 0, a.now() >= o.Until:
		line.Status = core.StatusClosed
	}
	return line, true
}

// browser tells whether an API is opened by the payer's browser.
func browser(method string) bool {
	return strings.HasSuffix(method, ".page.pay") || strings.HasSuffix(method, ".wap.pay") || strings.HasSuffix(method, ".app.pay")
}
