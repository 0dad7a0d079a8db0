// Package stripesim is the Stripe of the simulator: card PaymentIntents with
// charges, refunds, events and webhooks behind Stripe's own wire, written from
// public facts about Stripe alone.
//
// All rows are changed under the lock of core.World. A call's effect, the
// answer stored under its idempotency key and its events are one durable step.
//
// The package must not know the adapter that is judged by it, nor any other
// channel.
package stripesim

import (
	"cmp"
	"slices"
	"time"

	"github.com/payonce/payonce/internal/sim/core"
	"github.com/payonce/payonce/internal/sim/journal"
)

// Channel is Stripe's name in the control API.
const Channel = "stripe"

// Version is the API version that all objects and events are shaped in.
const Version = "2026-02-25.clover"

// Stripe is one simulated account.
type Stripe struct {
	w       *core.World
	webhook string // address that gets all notices without an endpoint object
	base    string // scheme and host in links; "" is the request's own

	intents   *journal.Table[intent]
	charges   *journal.Table[charge]
	refunds   *journal.Table[refund]
	endpoints *journal.Table[endpoint]
	keys      *journal.Table[keyRow]
	answers   *journal.Blobs

	// Indexes, rebuilt when the folder is opened.
	intentOrder []string
	chargeOrder []string
	refundOrder []string
	eventOrder  []string
	byNumber    map[string][]string // number → intents, oldest first
	byCharge    map[string][]string // charge → refunds, oldest first
	running     map[string]string   // idempotency key → hash of the request under way
	keyAges     []keyAge            // oldest first
}

// New registers the tables on the world, which is not open yet. webhook and
// base may be empty.
func New(w *core.World, webhook, base string) *Stripe {
	j := w.Journal()
	s := &Stripe{
		w:         w,
		webhook:   webhook,
		base:      base,
		intents:   journal.NewTable[intent](j, "stripe_intent"),
		charges:   journal.NewTable[charge](j, "stripe_charge"),
		refunds:   journal.NewTable[refund](j, "stripe_refund"),
		endpoints: journal.NewTable[endpoint](j, "stripe_endpoint"),
		keys:      journal.NewTable[keyRow](j, "stripe_key"),
		answers:   journal.NewBlobs(j, "stripe_answer"),
		byNumber:  map[string][]string{},
		byCharge:  map[string][]string{},
		running:   map[string]string{},
	}
	w.RegisterPostman(Channel, s)
	w.AddSwitch(Channel, switchTwins, "off", "on")
	w.AddSwitch(Channel, switchOrder, "made", "shuffled")
	return s
}

// Name is the channel's name.
func (s *Stripe) Name() string { return Channel }

// Resume rebuilds the indexes and timers once the world is open.
func (s *Stripe) Resume() {
	pos := s.w.Update(func() {
		for _, i := range bySeq(s.intents.Rows, func(i *intent) int64 { return i.Seq }) {
			s.intentOrder = append(s.intentOrder, i.ID)
			s.byNumber[i.Number] = append(s.byNumber[i.Number], i.ID)
			if i.Status == requiresCapture {
				s.lapseAt(i)
			}
		}
		for _, c := range bySeq(s.charges.Rows, func(c *charge) int64 { return c.Seq }) {
			s.chargeOrder = append(s.chargeOrder, c.ID)
		}
		for _, r := range bySeq(s.refunds.Rows, func(r *refund) int64 { return r.Seq }) {
			s.refundOrder = append(s.refundOrder, r.ID)
			s.byCharge[r.Charge] = append(s.byCharge[r.Charge], r.ID)
			s.settleRefundAt(r)
		}
		for _, n := range s.w.Notices() {
			if n.Channel == Channel {
				s.eventOrder = append(s.eventOrder, n.Event)
			}
		}
		s.resumeKeys()
	})
	if err := s.w.Wait(pos); err != nil {
		s.w.Log.Error("the books cannot be written", "error", err)
	}
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

// SecretKey is the API key that the account accepts.
func (s *Stripe) SecretKey() string { return "sk_test_" + s.w.Seed.Text("stripe secret key", 0, 32) }

// WebhookSecret signs the notices to the address given at the start.
func (s *Stripe) WebhookSecret() string {
	return "whsec_" + s.w.Seed.Text("stripe webhook secret", 0, 32)
}

func (s *Stripe) accountID() string { return "acct_" + s.w.Seed.Text("stripe account", 0, 16) }

// Credentials are what a client needs.
func (s *Stripe) Credentials() (map[string]string, error) {
	return map[string]string{
		"secret_key":      s.SecretKey(),
		"publishable_key": "pk_test_" + s.w.Seed.Text("stripe publishable key", 0, 32),
		"webhook_secret":  s.WebhookSecret(),
	}, nil
}

func (s *Stripe) now() int64 { return s.w.Now().Unix() }

func unix(sec int64) time.Time { return time.Unix(sec, 0).UTC() }
