package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
)

const (
	tourMark  = "<!-- tour -->"
	blockEnd  = "=== end of a block ==="
	shellOpen = "```sh\n"
)

// tourBlocks are the shell blocks of a page that a reader is asked to paste.
func tourBlocks(page string) []string {
	var blocks []string
	for i, part := range strings.Split(page, tourMark) {
		code, ok := strings.CutPrefix(strings.TrimLeft(part, "\n"), shellOpen)
		if i == 0 || !ok {
			continue
		}
		code, _, _ = strings.Cut(code, "```")
		blocks = append(blocks, code)
	}
	return blocks
}

// TestTour pastes the blocks of the README, in both languages, into one shell
// beside a fresh `payonce dev`, and looks for what the text promises.
func TestTour(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"README.md", "README.zh-CN.md"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := os.ReadFile(filepath.Join(repoDir, name))
			if err != nil {
				missing(t, name, err)
			}
			blocks := tourBlocks(string(page))
			if want := strings.Count(string(page), tourMark); len(blocks) != want || want < 3 {
				t.Fatalf("%d blocks of a tour with %d marks", len(blocks), want)
			}
			paste(t, ownDev(t, plainBin), blocks)
		})
	}
}

func paste(t *testing.T, d *dev, blocks []string) {
	script := "set -eu\n" + strings.Join(blocks, "\necho; echo '"+blockEnd+"'\n")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(cleanEnv(), "API="+d.base, "SIM="+d.sim.base, "PATH="+filepath.Dir(plainBin)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the tour: %v\n%s", err, out)
	}
	said := strings.Split(string(out), blockEnd)
	if len(said) != len(blocks) {
		t.Fatalf("%d answers to %d blocks:\n%s", len(said), len(blocks), out)
	}
	for i, code := range blocks {
		for _, promise := range promised(code) {
			if !strings.Contains(said[i], promise) {
				t.Errorf("%q is promised, the block\n%s\nsays\n%s", promise, code, said[i])
			}
		}
	}
	for _, no := range []string{"tour-1", "tour-2"} {
		number := payonce.ChannelNumber(installation, payonce.OrderKey{Merchant: devMerchant, Environment: payonce.Test, OrderNo: no}, 1)
		if n := len(d.sim.books(t).taken(number)); n != 1 {
			t.Errorf("%s: %d charges on the books, want 1", no, n)
		}
	}
}

// promised is what the text around a block says that it shows.
func promised(code string) []string {
	switch {
	case strings.Contains(code, "second-key"):
		return []string{`"status":"SUCCEEDED"`, "order-already-paid"}
	case strings.Contains(code, "lose_response"):
		return []string{`"status":"UNKNOWN"`, `"status":"SUCCEEDED"`}
	case strings.Contains(code, "chargeDeclined"):
		return []string{"payment-declined", `"status":"FAILED"`}
	case strings.Contains(code, "/_sim/books"):
		return []string{`"status":"paid"`}
	}
	return []string{`"status":"SUCCEEDED"`}
}
