package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/payonce/payonce/internal/web"
)

// simClient talks to the control API of the simulator, for payonce dev.
type simClient struct {
	base string
	http *http.Client
}

const maxSimAnswer = 64 << 20 // books grow with the demo

func newSimClient(base string) *simClient {
	return &simClient{base: base, http: &http.Client{Timeout: 10 * time.Second}}
}

func (c *simClient) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 500)) // only for the message
		return fmt.Errorf("simulator: %s %s: %s: %s", method, path, res.Status, bytes.TrimSpace(text))
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(io.LimitReader(res.Body, maxSimAnswer)).Decode(out)
}

// stripeCredentials are what the simulated Stripe gives its client.
type stripeCredentials struct {
	SecretKey      string `json:"secret_key"`
	PublishableKey string `json:"publishable_key"`
	WebhookSecret  string `json:"webhook_secret"`
	BaseURL        string `json:"base_url"`
}

// alipayCredentials are what the simulated Alipay gives its client.
type alipayCredentials struct {
	AppID           string `json:"app_id"`
	SellerID        string `json:"seller_id"`
	AppPrivateKey   string `json:"app_private_key"`
	AlipayPublicKey string `json:"alipay_public_key"`
	BaseURL         string `json:"base_url"`
}

// credentials are what the demo's accounts need.
type credentials struct {
	Stripe stripeCredentials `json:"stripe"`
	Alipay alipayCredentials `json:"alipay"`
}

// credentials waits for the simulator to be up. Each channel is asked for alone:
// keys of channels that the demo does not use are never made.
func (c *simClient) credentials(ctx context.Context) (out credentials, err error) {
	for {
		err = c.call(ctx, http.MethodGet, "/_sim/credentials?channel=stripe", nil, &out)
		if err == nil {
			err = c.call(ctx, http.MethodGet, "/_sim/credentials?channel=alipay", nil, &out)
		}
		if err == nil {
			return out, nil
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(25 * time.Millisecond):
		}
	}
}

// offset is how far the simulator's clock is ahead.
func (c *simClient) offset(ctx context.Context) (time.Duration, error) {
	var out struct {
		Offset int64 `json:"offset_s"`
	}
	err := c.call(ctx, http.MethodGet, "/_sim/clock", nil, &out)
	return time.Duration(out.Offset) * time.Second, err
}

func (c *simClient) books(ctx context.Context) (*web.Books, error) {
	b := &web.Books{}
	return b, c.call(ctx, http.MethodGet, "/_sim/books", nil, b)
}

func (c *simClient) fault(ctx context.Context, channel, operation, fault string, delay time.Duration) error {
	in := map[string]any{"channel": channel, "operation": operation, "fault": fault, "times": 1}
	if delay > 0 {
		in["delay_ms"] = delay.Milliseconds()
	}
	return c.call(ctx, http.MethodPost, "/_sim/faults", in, nil)
}
