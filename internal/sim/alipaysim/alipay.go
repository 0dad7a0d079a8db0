// Package alipaysim is the Alipay of the simulator: QR, page, wap and app
// payments with refunds and notices behind the gateway's own wire (gateway.do,
// RSA2), written from public facts about Alipay alone.
//
// What a merchant orders first is an offer: a QR text or a signed form. The
// trade exists only after the payer has scanned, logged in or reached the
// password; until then Alipay knows nothing of the number, though it can be
// paid. All rows are changed under the lock of core.World; a call's effect and
// its notices are one durable step.
//
// The package must not know the adapter that is judged by it, nor any other
// channel.
package alipaysim

import (
	"cmp"
	"crypto/rsa"
	"slices"
	"time"

	"github.com/payonce/payonce/internal/sim/core"
	"github.com/payonce/payonce/internal/sim/journal"
)

// Channel is Alipay's name in the control API.
const Channel = "alipay"

// Account is the merchant's application: its public key verifies requests,
// Platform signs answers and notices.
type Account struct {
	AppID    string
	SellerID string
	App      *rsa.PublicKey
	Platform *rsa.PrivateKey
}

// Serials are the certificate serials of certificate mode.
type Serials struct {
	App, Root, Alipay string
}

// Keys give the account and its certificates; both are made when they are
// first asked for and stay the same.
type Keys struct {
	Account func() (Account, error)
	Serials func() (Serials, error)
}

// The switches of Alipay; their first value holds until another is set.
const (
	switchWaiting  = "notify_wait_buyer_pay"
	switchSuccess  = "notify_trade_success"
	switchFinished = "notify_trade_finished"
	switchClosed   = "notify_trade_closed"
	switchRefunds  = "notify_refunds"
	switchEmpty    = "notice_empty_fields"
	switchSlashes  = "slashes"
	switchAgain    = "precreate_again"
	switchBuyer    = "buyer_identity"
)

// Alipay is one simulated application.
type Alipay struct {
	w    *core.World
	keys Keys
	base string // scheme and host in links; "" is the request's own

	offers *journal.Table[offer]
	trades *journal.Table[trade]

	// Indexes, rebuilt when the folder is opened; ids are oldest first.
	offerOrder []string
	tradeOrder []string
	offersOf   map[string][]string // by number
	tradesOf   map[string][]string
}

// New registers tables and switches on the world, which is not open yet. base
// may be empty.
func New(w *core.World, keys Keys, base string) *Alipay {
	a := &Alipay{
		w:        w,
		keys:     keys,
		base:     base,
		offers:   journal.NewTable[offer](w.Journal(), "alipay_offer"),
		trades:   journal.NewTable[trade](w.Journal(), "alipay_trade"),
		offersOf: map[string][]string{},
		tradesOf: map[string][]string{},
	}
	w.RegisterPostman(Channel, a)
	for _, s := range [][]string{
		{switchWaiting, "off", "on"},
		{switchSuccess, "on", "off"},
		{switchFinished, "product", "on", "off"},
		{switchClosed, "product", "on", "off"},
		{switchRefunds, "on", "off"},
		{switchEmpty, "none", "signed", "unsigned"},
		{switchSlashes, "escaped", "plain"},
		{switchAgain, "same_code", "new_code", "refused"},
		{switchBuyer, "user_id", "open_id"},
	} {
		w.AddSwitch(Channel, s[0], s[1:]...)
	}
	return a
}

// Name is the channel's name.
func (a *Alipay) Name() string { return Channel }

// Resume rebuilds the indexes and timers once the world is open.
func (a *Alipay) Resume() {
	a.w.View(func() {
		for _, o := range bySeq(a.offers.Rows, func(o *offer) int64 { return o.Seq }) {
			a.indexOffer(o)
		}
		for _, t := range bySeq(a.trades.Rows, func(t *trade) int64 { return t.Seq }) {
			a.indexTrade(t)
			a.watch(t)
		}
	})
}

// bySeq lists rows in the order in which they were made.
func bySeq[T any](rows map[string]*T, seq func(*T) int64) []*T {
	list := make([]*T, 0, len(rows))
	for _, row := range rows {
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b *T) int { return cmp.Compare(seq(a), seq(b)) })
	return list
}

func (a *Alipay) indexOffer(o *offer) {
	a.offerOrder = append(a.offerOrder, o.ID)
	a.offersOf[o.Terms.Number] = append(a.offersOf[o.Terms.Number], o.ID)
}

func (a *Alipay) indexTrade(t *trade) {
	a.tradeOrder = append(a.tradeOrder, t.ID)
	a.tradesOf[t.Terms.Number] = append(a.tradesOf[t.Terms.Number], t.ID)
}

func (a *Alipay) now() int64 { return a.w.Now().Unix() }

func unix(sec int64) time.Time { return time.Unix(sec, 0).UTC() }

// buyer is the one payer of the simulator.
func (a *Alipay) buyer() string { return "2088" + a.w.Seed.Digits("alipay buyer", 12) }
