package alipaysim

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestSignedTexts compares the texts that are signed with vectors that were
// made without this code.
func TestSignedTexts(t *testing.T) {
	request := map[string]string{"app_id": "2021000000000001", "method": "alipay.trade.precreate", "format": "JSON",
		"biz_content": `{"out_trade_no":"T20261201001","subject":"测试","total_amount":"88.88"}`, "charset": "utf-8",
		"notify_url": "https://shop.example/alipay/notify", "sign_type": "RSA2", "timestamp": "2026-12-01 10:00:00",
		"version": "1.0", "sign": "left out"}
	if got := hashOf(canonical(request, false, "sign")); got != "6a9072974b67b4c5a0f6421f2b8ec10965bdfe41f8dfe8acd81d1ee503eaae11" {
		t.Errorf("request %s", got)
	}
	notice := map[string]string{"app_id": "2021000000000001", "charset": "utf-8", "notify_id": "N0001",
		"notify_time": "2026-12-01 10:00:05", "notify_type": "trade_status_sync", "out_trade_no": "T20261201001",
		"seller_id": "2088000000000001", "total_amount": "88.88", "trade_no": "2026120122001400000000000001",
		"trade_status": "TRADE_SUCCESS", "version": "1.0"}
	if got := hashOf(canonical(notice, true)); got != "8aac65b886961ca3509be52c6f72836d76f206cd8c0d3e4c76b0e38c2e4da2b3" {
		t.Errorf("notice %s", got)
	}
}

// TestA05_YuanAndFen: every amount to 9999.99 is the same after printing and
// reading it.
func TestA05_YuanAndFen(t *testing.T) {
	for fen := int64(1); fen <= 999_999; fen++ {
		if got, ok := parseYuan(yuan(fen)); !ok || got != fen {
			t.Fatalf("%d is %s is %d", fen, yuan(fen), got)
		}
	}
	for text, want := range map[string]int64{"1": 100, "0.1": 10, "100000000": 10_000_000_000, "007.50": 750} {
		if got, ok := parseYuan(text); !ok || got != want {
			t.Errorf("%s is %d %v", text, got, ok)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "0", "0.00", "-1", "+1", "1e2", "1,0", "1.001", " 1", "1 ", "１", "100000000.01", "9999999999"} {
		if got, ok := parseYuan(text); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

// TestZ04_EndOfTheBeijingDay: 1c ends with the day in Beijing.
func TestZ04_EndOfTheBeijingDay(t *testing.T) {
	for from, want := range map[string]string{"2026-12-01T15:59:59Z": "2026-12-02 00:00:00", "2026-12-01T16:00:00Z": "2026-12-03 00:00:00"} {
		at, err := time.Parse(time.RFC3339, from)
		if err != nil {
			t.Fatal(err)
		}
		until, ok := parseTimeout("1c", at)
		if !ok || clockText(until.Unix()) != want {
			t.Errorf("1c from %s is %s, want %s", from, clockText(until.Unix()), want)
		}
	}
}
