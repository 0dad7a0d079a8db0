package main

import (
	"bufio"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/bench/internal/wire"
	"github.com/payonce/payonce/channel/alipay"
	"github.com/payonce/payonce/idempotency"
	"github.com/payonce/payonce/internal/engine"
)

const (
	noticeAccount = "alipay"
	noticeApp     = "2021000000000001"
	noticeSeller  = "2088000000000001"
	noticeAmount  = payonce.Amount(1999)
	noticeDay     = "2026-01-02 15:04:05"
)

// sender is the channel's side of an Alipay account: it holds the key that the
// account verifies with, and signs what the measured requests are made of.
type sender struct {
	key     *rsa.PrivateKey
	account engine.Account
}

// newSender makes both sides of an account, with keys of their own.
func newSender() (*sender, error) {
	var keys [2]*rsa.PrivateKey // the application's and Alipay's
	for i := range keys {
		var err error
		if keys[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			return nil, err
		}
	}
	app, err := x509.MarshalPKCS8PrivateKey(keys[0])
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(&keys[1].PublicKey)
	if err != nil {
		return nil, err
	}
	adapter, err := alipay.New(alipay.Config{
		Account: noticeAccount, Environment: payonce.Test, AppID: noticeApp, SellerID: noticeSeller,
		AppPrivateKey:   base64.StdEncoding.EncodeToString(app),
		AlipayPublicKey: base64.StdEncoding.EncodeToString(public),
		BaseURL:         "http://127.0.0.1:1", // a page is signed without a call
	})
	if err != nil {
		return nil, err
	}
	return &sender{key: keys[1], account: engine.Account{ID: noticeAccount, Channel: "alipay", Merchant: merchant,
		Environment: payonce.Test, Adapter: adapter}}, nil
}

// prepare makes payments that wait for their payer, and writes one genuine notice
// of success for each to the file, one body a line. Many at once are asked for,
// so that their transactions are shared.
func (s *sender) prepare(ctx context.Context, e *engine.Engine, count int, file string) error {
	const makers = 128
	lines, errs := make([]string, count), make([]error, makers)
	var making sync.WaitGroup
	for m := range makers {
		making.Go(func() {
			for i := m; i < count && errs[m] == nil; i += makers {
				lines[i], errs[m] = s.one(ctx, e, i)
			}
		})
	}
	making.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("payments that wait: %w", err)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for _, line := range lines {
		_, _ = w.WriteString(line + "\n") // Flush tells
	}
	return errors.Join(w.Flush(), f.Close())
}

// one makes a payment and signs its notice.
func (s *sender) one(ctx context.Context, e *engine.Engine, i int) (string, error) {
	name := fmt.Sprintf("n-%d", i)
	sum := sha256.Sum256([]byte(name))
	res, err := e.Pay(ctx, engine.PayRequest{
		Order: payonce.OrderKey{Merchant: merchant, Environment: payonce.Test, OrderNo: name}, Key: sum,
		Fingerprint: idempotency.Fingerprint{Version: 1, Secret: "bench", Sum: sum},
		Channel:     "alipay", Method: alipay.MethodPage, Account: noticeAccount,
		Amount: noticeAmount, Currency: "CNY", Subject: "Benchmark",
	})
	if err != nil {
		return "", err
	}
	if res.Payment.Status != payonce.Pending {
		return "", fmt.Errorf("payment %s is %s", res.Payment.ID, res.Payment.Status)
	}
	return s.notice(res.Payment, i)
}

// notice is the form that Alipay posts when a trade is paid.
func (s *sender) notice(p *payonce.Payment, i int) (string, error) {
	total, err := p.Currency.Format(p.Amount)
	if err != nil {
		return "", err
	}
	fields := map[string]string{
		"notify_time": noticeDay, "notify_type": "trade_status_sync", "notify_id": fmt.Sprintf("20260102%026d", i),
		"charset": "utf-8", "version": "1.0", "app_id": noticeApp, "auth_app_id": noticeApp, "seller_id": noticeSeller,
		"trade_no": fmt.Sprintf("20260102%020d", i), "out_trade_no": p.Number, "trade_status": "TRADE_SUCCESS",
		"total_amount": total, "receipt_amount": total, "buyer_pay_amount": total, "invoice_amount": total, "point_amount": "0.00",
		"buyer_id": "2088000000000002", "buyer_logon_id": "159****5620", "subject": "Benchmark",
		"gmt_create": noticeDay, "gmt_payment": noticeDay, "fund_bill_list": `[{"amount":"` + total + `","fundChannel":"ALIPAYACCOUNT"}]`,
	}
	var text []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text = append(text, name+"="+fields[name])
	}
	sum := sha256.Sum256([]byte(strings.Join(text, "&")))
	sig, err := rsa.SignPKCS1v15(nil, s.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	form := url.Values{"sign_type": {"RSA2"}, "sign": {base64.StdEncoding.EncodeToString(sig)}}
	for name, value := range fields {
		form.Set(name, value)
	}
	return form.Encode(), nil
}

// noticeCounts are what the database holds of a payment that succeeded once.
const noticeCounts = `SELECT
 (SELECT count(*) FROM payments WHERE status = 'SUCCEEDED' AND effective = 1 AND charge_count = 1),
 (SELECT count(*) FROM orders WHERE status = 'PAID' AND amount_paid = amount AND amount_surplus = 0),
 (SELECT count(*) FROM charges WHERE kind = 'effective' AND amount = $1),
 (SELECT count(*) FROM charges),
 (SELECT count(*) FROM evidence WHERE source = 'notice'),
 (SELECT count(*) FROM events WHERE type = 'payment.succeeded'),
 (SELECT count(*) FROM notices WHERE status = 'applied'),
 (SELECT count(*) FROM notices)`

// tell shows the counts.
func tell(db *sql.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var c wire.Notices
		err := db.QueryRowContext(r.Context(), noticeCounts, int64(noticeAmount)).
			Scan(&c.Succeeded, &c.Paid, &c.Effective, &c.Charges, &c.Evidence, &c.Events, &c.Applied, &c.Stored)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(c) // the asker is gone: nobody to tell
	}
}
