package alipay

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"pgregory.net/rapid"
)

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// TestS13_Vectors: the texts that signatures cover, against published digests.
func TestS13_Vectors(t *testing.T) {
	request := map[string]string{
		"app_id": testApp, "biz_content": `{"out_trade_no":"T20261201001","subject":"测试","total_amount":"88.88"}`, "charset": "utf-8", "format": "JSON",
		"method": "alipay.trade.precreate", "notify_url": "https://shop.example/alipay/notify", "sign_type": "RSA2", "timestamp": "2026-12-01 10:00:00",
		"version": "1.0", "sign": "left out",
	}
	if s := canonical(request); len(s) != 268 || digest(s) != "6a9072974b67b4c5a0f6421f2b8ec10965bdfe41f8dfe8acd81d1ee503eaae11" {
		t.Errorf("request: %d bytes %s\n%s", len(s), digest(s), s)
	}

	node := `{"code":"10000","msg":"Success","out_trade_no":"T20261201001","qr_code":"https:\/\/qr.alipay.com\/bax00000"}`
	e, err := cut([]byte(" {\n\"sign\":\"x\",\t\"alipay_trade_precreate_response\" : "+node+" } \r\n"), methodPrecreate)
	if err != nil || len(e.node) != 108 || digest(string(e.node)) != "cdb3d232b5239d3d9c97d1b44be805da8c20fc7afe452de7fc829b00ffbd47ba" {
		t.Errorf("node: %v\n%s", err, e.node)
	}

	v := url.Values{}
	for k, s := range map[string]string{
		"app_id": testApp, "charset": "utf-8", "notify_id": "N0001", "notify_time": "2026-12-01 10:00:05", "notify_type": "trade_status_sync",
		"out_trade_no": "T20261201001", "seller_id": testSeller, "total_amount": "88.88", "trade_no": testTrade, "trade_status": "TRADE_SUCCESS",
		"version": "1.0", "sign_type": "RSA2", "sign": "x",
	} {
		v.Set(k, s)
	}
	fields, err := parseForm([]byte(v.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if s := noticeText(fields, false, false); len(s) != 264 || digest(s) != "8aac65b886961ca3509be52c6f72836d76f206cd8c0d3e4c76b0e38c2e4da2b3" {
		t.Errorf("notice: %d bytes %s\n%s", len(s), digest(s), s)
	}
}

// TestA05_YuanAndBack is exhaustive from 0.00 to 9999.99, against decimal text
// made by hand.
func TestA05_YuanAndBack(t *testing.T) {
	for n := range payonce.Amount(1_000_000) {
		s, err := yuan(n)
		if back, ok := fen(s); err != nil || !ok || back != n || s != yuanOf(n) {
			t.Fatalf("%d prints %q (%v) and reads %d", n, s, err, back)
		}
	}
}

func TestA05_YuanOfAnyAmount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := payonce.Amount(rapid.Int64Range(0, 99_999_999_999_999).Draw(t, "fen"))
		s, err := yuan(n)
		if back, ok := fen(s); err != nil || !ok || back != n {
			t.Fatalf("%d prints %q and reads %d", n, s, back)
		}
	})
}

// TestA04_FenReadsExactly: what is not plain decimal text with at most two
// decimals is no amount, and nothing is rounded.
func TestA04_FenReadsExactly(t *testing.T) {
	for s, want := range map[string]payonce.Amount{"0.01": 1, "1": 100, "1.5": 150, "19.90": 1990, "0.29": 29, "88.88": 8888, "100000000.00": 10_000_000_000} {
		if got, ok := fen(s); !ok || got != want {
			t.Errorf("fen(%q) = %d %t, want %d", s, got, ok, want)
		}
	}
	for _, s := range []string{"", ".", ".5", "5.", "1.005", "1.000", "01.00", "-1.00", "+1.00", " 1.00", "1.00 ", "1e2", "1,000.00", "0x10", "１.00", "1.0.0", "NaN", "9999999999999.00"} {
		if got, ok := fen(s); ok {
			t.Errorf("fen(%q) = %d, want none", s, got)
		}
	}
}

// TestZ01_ExpiryIsChinaTimeRoundedUp in every zone and with every fraction.
func TestZ01_ExpiryIsChinaTimeRoundedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(1_700_000_000, 2_000_000_000).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		zone := time.FixedZone("any", rapid.IntRange(-12, 14).Draw(t, "h")*3600)
		s := expiry(at.In(zone))
		told := readTime(s)
		if told.Before(at) || told.Sub(at) >= time.Second {
			t.Fatalf("%v is told as %s", at, s)
		}
		if want := told.Add(8 * time.Hour).UTC().Format("2006-01-02 15:04:05"); s != want {
			t.Fatalf("%s, want %s", s, want)
		}
	})
	if got := readTime("2026-12-01 10:00:05.123"); !got.Equal(time.Date(2026, 12, 1, 2, 0, 5, 123_000_000, time.UTC)) {
		t.Errorf("with a fraction: %v", got)
	}
	if !readTime("yesterday").IsZero() {
		t.Error("no time was read as one")
	}
}
