package wechatpay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/wechatpay-apiv3/wechatpay-go/core/consts"
	"pgregory.net/rapid"
)

// TestS13_Vectors: the texts that signatures cover, against published digests;
// each line ends with a line feed, the last too.
func TestS13_Vectors(t *testing.T) {
	const nonce = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
	// The text of a request is the SDK's; that it is what goes out is shown by
	// TestS13_RequestsAreSigned.
	request := func(method, target, body string) string {
		return fmt.Sprintf(consts.SignatureMessageFormat, method, target, 1700000000, nonce, body)
	}
	for name, c := range map[string]struct {
		text  string
		bytes int
		sum   string
	}{
		"post":   {request("POST", "/v3/pay/transactions/native", `{"mchid":"1900000001"}`), 100, "735b077140d3923245a0ed60edeb8159a93001771059b32546dd0a318895200d"},
		"get":    {request("GET", "/v3/pay/transactions/out-trade-no/T20261201001?mchid=1900000001", ""), 113, "f655e155f4de069e74a909f0154141fad19563030694f61df89db3146efa8043"},
		"answer": {signedText("1700000001", "nonce-0001", []byte(`{"code_url":"weixin://wxpay/bizpayurl?pr=test"}`)), 70, "49223f2ee5ed2f321c7a49692d31f8aede67ac12f96c5b78efd2d90246e847d6"},
		"204":    {signedText("1700000001", "nonce-0001", nil), 23, "bfe7d57828929e44a2f366b0ecd8cd32f89f9ba5c0e9602e042871e904cdf5fb"},
		"jsapi":  {clientText("wx0000000000000001", "1700000000", "NONCE0001", "prepay_id=wx201410272009395522657a690389285100"), 87, "00bae76c74db8ec26d33984f2e4753e2e6d6580c784a3de82996f4709a71fb08"},
		"app":    {clientText("wx0000000000000001", "1700000000", "NONCE0001", "wx201410272009395522657a690389285100"), 77, "f07ad1fccbb27e9e038a720c17976a7b84601294f6dc9d18ad66f8df510d1cb3"},
	} {
		sum := sha256.Sum256([]byte(c.text))
		if got := hex.EncodeToString(sum[:]); got != c.sum || len(c.text) != c.bytes {
			t.Errorf("%s: %d bytes %s, want %d %s\n%q", name, len(c.text), got, c.bytes, c.sum, c.text)
		}
	}
}

// TestS13_Decrypting, with and without associated data.
func TestS13_Decrypting(t *testing.T) {
	a := newAdapter(t, "", func(c *Config) { c.APIv3Key = "0123456789abcdef0123456789abcdef" })
	for data, sealed := range map[string]string{"transaction": "Eu6onfHUEIuHuUJ2U2443mIzhnIIlMg=", "": "Eu6onfHUEN2pHXwDRh+nBLLwzeivO54="} {
		resource := map[string]any{"algorithm": "AEAD_AES_256_GCM", "nonce": "abcdefghijkl", "associated_data": data, "ciphertext": sealed}
		m, err := object(mustJSON(resource))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := a.decrypt(m); err != nil || string(plain) != `{"a":1}` {
			t.Errorf("associated data %q: %q %v", data, plain, err)
		}
	}
}

// TestZ01_ExpiryIsChinaTimeRoundedUp in every zone and with every fraction.
func TestZ01_ExpiryIsChinaTimeRoundedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(1_700_000_000, 2_000_000_000).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		zone := time.FixedZone("any", rapid.IntRange(-12, 14).Draw(t, "h")*3600)
		s := expiry(at.In(zone))
		told, err := time.Parse(time.RFC3339, s)
		if err != nil || told.Before(at) || told.Sub(at) >= time.Second {
			t.Fatalf("%v is told as %s", at, s)
		}
		if want := told.Add(8*time.Hour).UTC().Format("2006-01-02T15:04:05") + "+08:00"; s != want {
			t.Fatalf("%s, want %s", s, want)
		}
	})
}

// TestA04_FenReadsExactly: only whole digits are an amount.
func TestA04_FenReadsExactly(t *testing.T) {
	for raw, want := range map[string]payonce.Amount{"1": 1, "1999": 1999, "9007199254740993": 9007199254740993} {
		m, err := object([]byte(`{"total": ` + raw + ` }`))
		if got, ok := m.fen("total"); err != nil || !ok || got != want {
			t.Errorf("%s is %d %t %v", raw, got, ok, err)
		}
	}
	for _, raw := range []string{`0`, `-1`, `1.0`, `1e2`, `"1"`, `null`, `[1]`, `true`, `9223372036854775808`, `{}`} {
		m, err := object([]byte(`{"total":` + raw + `}`))
		if got, ok := m.fen("total"); ok || err != nil {
			t.Errorf("%s is %d %v", raw, got, err)
		}
	}
}
