package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Settings of served nodes, short enough for tests. A lease outlives the longest
// call by fifteen seconds.
const (
	serveMerchant = "m1"
	answerWithin  = 2 * time.Second
	callTimeout   = 4 * time.Second
)

// account is one channel account of the configuration.
type account struct {
	merchant, id string
	sim          *simulator
}

// node is one `payonce serve`.
type node struct {
	nodeSettings
	config string
	addr   string
	log    *logBuffer
	proc   *process
}

// nodeSettings say what differs between nodes.
type nodeSettings struct {
	name, bin, database string
	answer, call        time.Duration
	accounts            []account
}

// newNode writes the configuration of a node.
func newNode(s nodeSettings) (*node, error) {
	dir, err := os.MkdirTemp(tempDir, "node-"+s.name+"-")
	if err != nil {
		return nil, err
	}
	if s.answer == 0 {
		s.answer, s.call = answerWithin, callTimeout
	}
	n := &node{nodeSettings: s, config: filepath.Join(dir, "payonce.yaml"), addr: freeAddr(), log: &logBuffer{}}
	var b strings.Builder
	fmt.Fprintf(&b, "addr: %s\nadmin_addr: %s\npublic_url: http://%s\ndatabase_url: %q\nnode_id: %s\nstate_dir: %q\nanswer_within: %v\ncall_timeout: %v\nmerchants:\n",
		n.addr, freeAddr(), n.addr, s.database, s.name, dir, s.answer, s.call)
	merchant := ""
	for _, a := range s.accounts {
		c, err := a.sim.credentials()
		if err != nil {
			return nil, fmt.Errorf("credentials of the simulator: %w", err)
		}
		if a.merchant != merchant {
			fmt.Fprintf(&b, "  - id: %s\n    accounts:\n", a.merchant)
			merchant = a.merchant
		}
		fmt.Fprintf(&b, "      - {id: %s, channel: stripe, environment: test, trusted_date: true, base_url: %q, secret_key: %q, publishable_key: %q, webhook_secret: %q}\n",
			a.id, c["base_url"], c["secret_key"], c["publishable_key"], c["webhook_secret"])
	}
	return n, os.WriteFile(n.config, []byte(b.String()), 0o600)
}

// migrate makes the schema, with the installation id of all tests.
func (n *node) migrate() error {
	_, err := command(n.log, nil, plainBin, "migrate", "up", "--config", n.config, "--installation", installation)
	return err
}

// newAPIKey makes an API key with the command that operators use.
func (n *node) newAPIKey(merchant, environment string) (id, key string, err error) {
	out, err := command(n.log, nil, plainBin, "keys", "create", "--config", n.config, "--merchant", merchant, "--environment", environment, "--role", "api")
	if err != nil {
		return "", "", err
	}
	var k struct{ ID, Key string }
	if err := jsonLine(out, &k); err != nil {
		return "", "", err
	}
	return k.ID, k.Key, nil
}

// launch starts the process without waiting for it.
func (n *node) launch(env ...string) error {
	p, err := launch("serve "+n.name, n.log, env, n.bin, "serve", "--config", n.config)
	n.proc = p
	return err
}

// start starts the process and waits until it is ready, or until it died: a
// failpoint may be met before that.
func (n *node) start(env ...string) error {
	if err := n.launch(env...); err != nil {
		return err
	}
	a := api{base: "http://" + n.addr}
	ready := poll(startWithin, func() bool {
		return !n.proc.alive() || a.do(request{method: "GET", path: "/readyz", noAuth: true, within: time.Second}).code == http.StatusOK
	})
	if !ready {
		return fmt.Errorf("node %s is not ready after %v\n%s", n.name, startWithin, n.log.tail(3000))
	}
	if !n.proc.alive() && len(env) == 0 {
		return fmt.Errorf("node %s ended at its start\n%s", n.name, n.log.tail(3000))
	}
	return nil
}

// mustStart is start without failpoint, for tests.
func (n *node) mustStart(t testing.TB, env ...string) {
	t.Helper()
	if err := n.start(env...); err != nil {
		t.Fatal(err)
	}
}

// simProcess starts `payonce sim`.
func startSim(seed string) (*simulator, *process, error) {
	addr, log := freeAddr(), &logBuffer{}
	dir, err := os.MkdirTemp(tempDir, "sim-")
	if err != nil {
		return nil, nil, err
	}
	p, err := launch("payonce sim", log, nil, plainBin, "sim", "--addr", addr, "--data", dir, "--seed", seed)
	if err != nil {
		return nil, nil, err
	}
	s := &simulator{api{base: "http://" + addr}}
	if !poll(startWithin, func() bool { return !p.alive() || s.get("/_sim/clock").code == http.StatusOK }) || !p.alive() {
		p.kill()
		return nil, nil, fmt.Errorf("payonce sim is not ready\n%s", log.tail(3000))
	}
	return s, p, nil
}

func sharedSimulator(seed string) func() (*simulator, error) {
	return sync.OnceValues(func() (*simulator, error) {
		s, p, err := startSim(seed)
		if err != nil {
			return nil, err
		}
		atEnd(func() []string {
			defer p.stop()
			return (&world{sim: s}).audit()
		})
		return s, nil
	})
}

// Simulators by their use: the books of each stay short, since tests read them
// often.
var (
	firstSim  = sharedSimulator("1") // single nodes
	secondSim = sharedSimulator("2") // the second merchant of the pair
	pairSim   = sharedSimulator("3") // the first merchant of the pair
)

// theSim is the simulator of single nodes. Its clock is not moved.
func theSim(t testing.TB) *simulator {
	t.Helper()
	s, err := firstSim()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sqliteTemplate is a migrated database with an API key, made once and copied.
var sqliteTemplate = sync.OnceValues(func() (template struct{ dir, key string }, err error) {
	if template.dir, err = os.MkdirTemp(tempDir, "template-"); err != nil {
		return template, err
	}
	n, err := newNode(nodeSettings{name: "template", bin: plainBin, database: "sqlite://" + template.dir + "/payonce.db"})
	if err != nil {
		return template, err
	}
	if err = n.migrate(); err != nil {
		return template, err
	}
	_, template.key, err = n.newAPIKey(serveMerchant, "test")
	return template, err
})

// sqliteNode is a node on a database of its own that has not been started.
func sqliteNode(t testing.TB, bin string) (*world, *node) {
	t.Helper()
	tmpl, err := sqliteTemplate()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(tempDir, "sqlite-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "db"), os.DirFS(tmpl.dir)); err != nil {
		t.Fatal(err)
	}
	return nodeOn(t, bin, "sqlite://"+dir+"/db/payonce.db", tmpl.key)
}

// patientNode is a running node that waits for the channel as long as a real
// one does.
func patientNode(t testing.TB) (*world, *node) {
	t.Helper()
	w, first := sqliteNode(t, plainBin)
	n, err := newNode(nodeSettings{name: "a", bin: plainBin, database: first.database, accounts: first.accounts, answer: 20 * time.Second, call: 45 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w.base = "http://" + n.addr
	n.mustStart(t)
	showLogs(t, "node", n.log)
	t.Cleanup(func() {
		if n.proc.alive() {
			n.proc.stop()
		}
	})
	return w, n
}

// nodeOn is a node on a migrated database, not started.
func nodeOn(t testing.TB, bin, database, key string) (*world, *node) {
	t.Helper()
	sim := theSim(t)
	n, err := newNode(nodeSettings{name: "a", bin: bin, database: database, accounts: []account{{serveMerchant, "s1", sim}}})
	if err != nil {
		t.Fatal(err)
	}
	showLogs(t, "node", n.log)
	t.Cleanup(func() {
		if n.proc != nil && n.proc.alive() {
			n.proc.stop()
		}
	})
	return &world{api: &api{base: "http://" + n.addr, key: key}, sim: sim, merchant: serveMerchant, log: n.log}, n
}
