package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/payonce/payonce"
)

// world is a running service with its simulated channel.
type world struct {
	*api
	sim      *simulator
	merchant string
	log      *logBuffer
}

// installation is the installation id of every database here. Channel numbers
// follow from it, so a test knows a payment's number before the payment exists
// and can aim a fault at it. Order numbers are unique over all tests.
const installation = "e2e0e2e0e2e0e2e0e2e0e2e0e2e0e2e0"

var (
	orderSerial atomic.Int64
	runID       = func() string {
		var b [3]byte
		_, _ = rand.Read(b[:])
		return hex.EncodeToString(b[:])
	}()
)

// newOrder is an order number that no other test uses.
func newOrder(name string) string {
	return fmt.Sprintf("%s-%s-%d", name, runID, orderSerial.Add(1))
}

// number is the channel number of an order's attempt.
func (w *world) number(orderNo string, sequence int) string {
	return payonce.ChannelNumber(installation, payonce.OrderKey{Merchant: w.merchant, Environment: payonce.Test, OrderNo: orderNo}, sequence)
}

// numbers are those of the first attempts of an order: what the channel knows
// of it, found without asking the service.
func (w *world) numbers(orderNo string) []string {
	var list []string
	for seq := 1; seq <= 8; seq++ {
		list = append(list, w.number(orderNo, seq))
	}
	return list
}

// taken are the charges of an order on the books.
func (w *world) taken(t testing.TB, orderNo string) []charge {
	t.Helper()
	return w.sim.books(t).taken(w.numbers(orderNo)...)
}

// calls counts the channel calls of an order.
func (w *world) calls(t testing.TB, operation, orderNo string) int {
	t.Helper()
	return w.sim.books(t).calls(operation, w.numbers(orderNo)...)
}

// fault aims a fault at an order's attempt.
func (w *world) fault(t testing.TB, orderNo, operation, name string, times int) (remove func()) {
	t.Helper()
	return w.sim.fault(t, fault{Operation: operation, Fault: name, Times: times, Number: w.number(orderNo, 1)})
}

// silent keeps the channel's notices of an order away, so that asking is the
// only way to know.
func (w *world) silent(t testing.TB, orderNo string) {
	t.Helper()
	for seq := 1; seq <= 2; seq++ {
		w.sim.fault(t, fault{Operation: "notice", Fault: "drop", Times: always, Number: w.number(orderNo, seq)})
	}
}

// slow delays the first attempt's calls of one operation.
func (w *world) slow(t testing.TB, orderNo, operation string, d time.Duration, times int) {
	t.Helper()
	w.sim.fault(t, fault{Operation: operation, Fault: "delay", Times: times, DelayMS: d.Milliseconds(), Number: w.number(orderNo, 1)})
}

// paidOnce checks the end of a story: the channel took the order's money exactly
// once, and the service says so.
func (w *world) paidOnce(t testing.TB, orderNo string) payment {
	t.Helper()
	took := w.taken(t, orderNo)
	if len(took) != 1 {
		t.Fatalf("order %s: %d charges on the books, want 1: %+v", orderNo, len(took), took)
	}
	r := w.get("/v1/orders/" + orderNo)
	o := r.order()
	if o.Status != "PAID" || o.AmountPaid != took[0].Amount || o.Amount != took[0].Amount || o.Currency != took[0].Currency || o.AmountSurplus != 0 {
		t.Fatalf("order %s does not agree with the books %+v: %s", orderNo, took[0], r)
	}
	var effective []payment
	for _, p := range o.Payments {
		if p.Effective {
			effective = append(effective, p)
		} else if p.Status == "SUCCEEDED" {
			t.Fatalf("order %s: a second success: %s", orderNo, r)
		}
	}
	if len(effective) != 1 || effective[0].Status != "SUCCEEDED" || effective[0].Number != took[0].Number {
		t.Fatalf("order %s: %d effective payments: %s", orderNo, len(effective), r)
	}
	if id := effective[0].ChannelPayment; id == nil || *id != took[0].PaymentID && !strings.HasPrefix(*id, "ch_") {
		t.Fatalf("order %s: the charge is %s on the books: %s", orderNo, took[0].PaymentID, r)
	}
	return effective[0]
}

// notCharged checks that the channel took nothing and can take nothing more.
func (w *world) notCharged(t testing.TB, orderNo string) {
	t.Helper()
	for _, c := range w.sim.books(t).of(w.numbers(orderNo)...) {
		if c.Status != "closed" && c.Status != "declined" {
			t.Errorf("order %s: object %s is %s on the books", orderNo, c.PaymentID, c.Status)
		}
	}
}

// audit compares everything that the channel took with the orders: no object of
// ours took money for an order that has another success, and none is unknown.
// It asks the books once, for all tests that shared the world.
func (w *world) audit() []string {
	r := w.sim.get("/_sim/books")
	var b books
	if err := json.Unmarshal(r.body, &b); err != nil {
		return []string{"the books cannot be read at the end: " + err.Error()}
	}
	seen := map[string]string{}
	var problems []string
	for _, c := range b.Charges {
		if first, twice := seen[c.Number]; twice && c.took() {
			problems = append(problems, fmt.Sprintf("number %s took money twice: %s and %s", c.Number, first, c.PaymentID))
		}
		if c.took() {
			seen[c.Number] = c.PaymentID
		}
	}
	return problems
}

// devInfo is the ready line of payonce dev.
type devInfo struct {
	API     string `json:"api"`
	Sim     string `json:"sim"`
	Shop    string `json:"shop"`
	Metrics string `json:"metrics"`
	APIKey  string `json:"api_key"`
}

// dev is a running `payonce dev`.
type dev struct {
	world
	info     devInfo
	dir      string
	addr     string
	simAddr  string
	bin      string
	proc     *process
	prepared bool
}

// devMerchant is the merchant that payonce dev makes.
const devMerchant = "dev"

func newDev(bin string) (*dev, error) {
	dir, err := os.MkdirTemp(tempDir, "dev-")
	if err != nil {
		return nil, err
	}
	d := &dev{dir: dir, addr: freeAddr(), simAddr: freeAddr(), bin: bin}
	d.log, d.merchant = &logBuffer{}, devMerchant
	return d, nil
}

// start starts the service; a second start finds the folder of the first.
func (d *dev) start(env ...string) error {
	if !d.prepared {
		// The database is made beforehand, for the sake of its installation id.
		db := []string{"PAYONCE_DATABASE_URL=sqlite://" + filepath.Join(d.dir, "payonce.db")}
		if _, err := command(d.log, db, plainBin, "migrate", "up", "--installation", installation); err != nil {
			return err
		}
		d.prepared = true
	}
	p, err := launch("payonce dev", d.log, env, d.bin, "dev", "--addr", d.addr, "--sim", d.simAddr, "--data", d.dir)
	if err != nil {
		return err
	}
	d.proc = p
	select {
	case line := <-p.stdout:
		if err := json.Unmarshal([]byte(line), &d.info); err != nil {
			p.kill()
			return fmt.Errorf("payonce dev printed %q, not its ready line: %w\n%s", line, err, d.log.tail(3000))
		}
	case <-time.After(startWithin):
		p.kill()
		return fmt.Errorf("payonce dev is not ready after %v\n%s", startWithin, d.log.tail(3000))
	}
	d.api = &api{base: strings.TrimRight(d.info.API, "/"), key: d.info.APIKey}
	d.sim = &simulator{api{base: strings.TrimRight(d.info.Sim, "/")}}
	return nil
}

// ownDev is an instance for one test.
func ownDev(t testing.TB, bin string, env ...string) *dev {
	t.Helper()
	d, err := newDev(bin)
	if err != nil {
		t.Fatal(err)
	}
	showLogs(t, "payonce dev", d.log)
	if err := d.start(env...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.proc.stop() })
	return d
}

// common starts one instance for many tests.
func common(audit bool) func() (*dev, error) {
	return sync.OnceValues(func() (*dev, error) {
		d, err := newDev(plainBin)
		if err == nil {
			err = d.start()
		}
		if err != nil {
			return nil, err
		}
		atEnd(func() []string {
			var problems []string
			if audit {
				problems = d.audit()
			}
			if !d.proc.stop() {
				problems = append(problems, "payonce dev did not end on SIGTERM")
			}
			_ = os.WriteFile(filepath.Join(tempDir, "dev.log"), []byte(d.log.String()), 0o600)
			return problems
		})
		return d, nil
	})
}

var (
	steadyDev = common(true)
	timeDev   = common(true)
	timeLock  sync.Mutex
)

// steady is the instance of all tests that do not move the clock. Faults there
// are aimed at numbers.
func steady(t testing.TB) *dev {
	t.Helper()
	return useDev(t, steadyDev)
}

// virtual is the instance whose clock the test may move; one test at a time.
func virtual(t testing.TB) *dev {
	t.Helper()
	timeLock.Lock()
	t.Cleanup(timeLock.Unlock)
	return useDev(t, timeDev)
}

func useDev(t testing.TB, get func() (*dev, error)) *dev {
	t.Helper()
	d, err := get()
	if err != nil {
		t.Fatal(err)
	}
	mark := len(d.log.String())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of payonce dev during the test:\n%s", tailOf(d.log.String()[mark:], 3000))
		}
	})
	return d
}
