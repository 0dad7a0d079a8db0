package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
)

// Config is what an engine is made of.
type Config struct {
	Store store.Store
	// Submit writes one unit, grouped with others. nil: Store.Write alone.
	Submit func(context.Context, *store.Unit) error
	Runner run.Runner

	Accounts     []Account
	Installation string // under which channel numbers are derived
	NodeID       string // stable over restarts
	Incarnation  string // differs with every start
	PublicURL    string

	AnswerWithin time.Duration // a request waits so long for the channel (20 s)
	CallTimeout  time.Duration // a call may take so long (45 s)

	Encoder Encoder
	Logger  *slog.Logger
	// Observe is told of outcomes and alarms by stable names; never of an order.
	Observe func(event, channel, detail string)
}

// Fixed times of the rules.
const (
	claimTimeout  = 5 * time.Second  // the first transaction of a request fails closed after this
	useWithin     = 10 * time.Second // a right is used so soon after it was given, or not at all
	leaseMargin   = 15 * time.Second // a lease outlives useWithin and the longest call by the rest
	networkMargin = time.Minute      // what was sent has arrived or is lost after this
	maxRounds     = 5                // of closing an old attempt before a request gives up
	maxPreferWait = 1000             // requests of one process that may wait by preference
	maxAttempts   = 100              // of one order
	minLife       = time.Minute      // channels refuse an expiry that is closer
)

// Engine decides. It is safe for concurrent use.
type Engine struct {
	Config
	owner    string
	lease    time.Duration
	accounts map[string]*Account
	hub      *hub
	wake     chan struct{}
	calls    inFlight
	asked    asked
	gate     gate
}

// New checks the configuration and returns an engine. The watcher of other
// processes' changes starts with it, on the runner.
func New(c Config) (*Engine, error) {
	if c.Store == nil || c.Runner == nil || c.Encoder == nil {
		return nil, errors.New("engine: Store, Runner and Encoder are required")
	}
	if len(c.Installation) < 16 {
		return nil, errors.New("engine: the installation id is missing or too short")
	}
	if c.NodeID == "" || c.Incarnation == "" {
		return nil, errors.New("engine: NodeID and Incarnation are required")
	}
	if c.AnswerWithin <= 0 {
		c.AnswerWithin = 20 * time.Second
	}
	if c.CallTimeout <= 0 {
		c.CallTimeout = 45 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Observe == nil {
		c.Observe = func(string, string, string) {}
	}
	if c.Submit == nil {
		c.Submit = func(ctx context.Context, u *store.Unit) error { return c.Store.Write(ctx, []*store.Unit{u})[0] }
	}
	e := &Engine{Config: c, owner: c.NodeID + "/" + c.Incarnation, lease: c.CallTimeout + leaseMargin,
		accounts: map[string]*Account{}, wake: make(chan struct{}, 1)}
	for i := range c.Accounts {
		a := &c.Accounts[i]
		if a.Adapter == nil || a.ID == "" || e.accounts[a.ID] != nil {
			return nil, fmt.Errorf("engine: account %q is doubled or has no adapter", a.ID)
		}
		e.accounts[a.ID] = a
	}
	e.hub = newHub(c.Runner, c.Store)
	return e, nil
}

// Wake is signalled when this process made work that is due at once.
func (e *Engine) Wake() <-chan struct{} { return e.wake }

func (e *Engine) kick() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Drain waits until no call to a channel is under way, or until ctx ends.
func (e *Engine) Drain(ctx context.Context) error { return e.calls.wait(ctx) }

// account picks the account of a request.
func (e *Engine) account(k payonce.OrderKey, ch, id string) (*Account, error) {
	var found *Account
	for i := range e.Accounts {
		a := &e.Accounts[i]
		if a.Merchant != k.Merchant || a.Environment != k.Environment || a.Channel != ch || (id != "" && a.ID != id) {
			continue
		}
		if a.Paused && found != nil {
			continue
		}
		if found != nil && found.Paused {
			found = a
			continue
		}
		if found != nil {
			return nil, payonce.Invalid("/account", "there are several accounts for %s: name one", ch)
		}
		found = a
	}
	switch {
	case found == nil && id != "":
		return nil, payonce.Errorf(payonce.CodeChannelNotConfigured, "there is no account %q for %s", id, ch)
	case found == nil:
		return nil, payonce.Errorf(payonce.CodeChannelNotConfigured, "%s is not configured for this merchant and environment", ch)
	case found.Paused:
		return nil, payonce.Errorf(payonce.CodeChannelNotConfigured, "account %q is paused", found.ID)
	}
	return found, nil
}

// of returns the account and the capabilities that a stored payment was made
// with; an account that is no longer configured cannot be called.
func (e *Engine) of(p *payonce.Payment) (*Account, channel.Capabilities, error) {
	a := e.accounts[p.Account]
	if a == nil {
		return nil, channel.Capabilities{}, fmt.Errorf("account %s of payment %s is not configured", p.Account, p.ID)
	}
	caps, ok := a.Adapter.Methods()[p.Method]
	if !ok {
		return nil, channel.Capabilities{}, fmt.Errorf("method %s of payment %s is not built in", p.Method, p.ID)
	}
	return a, caps, nil
}

// seen is what waiters of a payment are told a change of.
type seen struct {
	version int64
	lease   string
}

// write runs one decision. point names the failpoints around it.
func (e *Engine) write(ctx context.Context, point, actor string, u *store.Unit, decide func(*store.View) error) error {
	if err := run.Fail(point + ".before"); err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	u.Actor = actor
	e.Runner.Random(u.Salt[:])
	var changed []*payonce.Payment
	u.Decide = func(v *store.View) error {
		v.NewID = func(prefix string) string { return e.newID(prefix, v.Now) }
		before := make(map[*payonce.Payment]seen, len(v.Payments))
		for _, p := range v.Payments {
			before[p] = seen{p.Version, p.LeaseOwner}
		}
		if err := decide(v); err != nil {
			return err
		}
		changed = changed[:0]
		for _, p := range v.Payments {
			if before[p] != (seen{p.Version, p.LeaseOwner}) {
				changed = append(changed, p)
			}
		}
		e.seal(v)
		return nil
	}
	if err := e.Submit(ctx, u); err != nil {
		late := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		if late && !errors.Is(err, store.ErrOutcomeUnknown) {
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err) // it was not started
		}
		return err
	}
	for _, p := range changed {
		e.hub.notify(p.ID)
	}
	if err := run.Fail(point + ".after"); err != nil {
		return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
	}
	return nil
}

// seal adds what follows from a decision: the bytes of final answers and of
// events. They are rendered under the lock, so they show the state that is
// committed with them.
func (e *Engine) seal(v *store.View) {
	for _, c := range v.Changes {
		p := v.Payment(c.PaymentID)
		if p == nil || p.Status.Live() || c.To != string(p.Status) || c.From == c.To {
			continue
		}
		status, ct, body := e.Encoder.Answer(v.Order, p)
		v.Answers = append(v.Answers, store.Answer{PaymentID: p.ID, Status: p.Status, HTTPStatus: status, ContentType: ct, Body: body})
	}
	for _, proof := range v.Proofs {
		p := v.Payment(proof.PaymentID)
		v.Evidence = append(v.Evidence, store.Evidence{ID: proof.ID, OrderID: p.OrderID, PaymentID: p.ID, Kind: payonce.StateNeverSent.String(),
			Source: "engine", Number: p.Number, Permit: len(p.Permits), Fence: p.Fence, Detail: proof.Cause, At: v.Now})
	}
	for _, ev := range v.Events {
		v.Outbox = append(v.Outbox, store.OutboxEvent{ID: v.NewID(payonce.PrefixEvent), Order: v.Order.Key, Type: ev.Type,
			Subject: ev.Subject, Change: ev.Change, Data: e.Encoder.EventData(v.Order, v.Payment(ev.Subject)), At: v.Now})
	}
}

func (e *Engine) newID(prefix string, at time.Time) string {
	var r [10]byte
	e.Runner.Random(r[:])
	return payonce.NewID(prefix, at, r)
}

func (e *Engine) leaseFrom(now time.Time) payonce.Lease {
	return payonce.Lease{Owner: e.owner, Until: now.Add(e.lease)}
}

// answerOf returns the final answer that this decision stored for p, nil while
// p is live.
func answerOf(v *store.View, p *payonce.Payment) *store.Answer {
	for i := range v.Answers {
		if v.Answers[i].PaymentID == p.ID && v.Answers[i].Status == p.Status {
			return &v.Answers[i]
		}
	}
	return nil
}

// inputs identifies what makes two requests for one order the same attempt: the
// channel, the method and its inputs. Where the payer returns to is not one.
func inputs(r *PayRequest, account string, amount payonce.Amount) [32]byte {
	capture := r.Capture
	if capture == "" {
		capture = "automatic"
	}
	h := sha256.New()
	var n [8]byte
	for _, s := range [...]string{"v1", r.Channel, r.Method, account, capture, r.Part,
		r.Payer.PaymentMethod, r.Payer.OpenID, r.Payer.ClientIP, r.Payer.BuyerID} {
		binary.BigEndian.PutUint32(n[:4], uint32(len(s)))
		h.Write(n[:4])
		h.Write([]byte(s))
	}
	binary.BigEndian.PutUint64(n[:], uint64(amount))
	h.Write(n[:])
	return [32]byte(h.Sum(nil))
}
