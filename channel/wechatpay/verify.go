package wechatpay

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/wechatpay-apiv3/wechatpay-go/core/auth"
	"github.com/wechatpay-apiv3/wechatpay-go/core/consts"
	"github.com/wechatpay-apiv3/wechatpay-go/utils"
)

// Errors of a signature, for the log and the doctor.
var (
	ErrNotSigned = errors.New("wechatpay: a header of the signature is missing, doubled or malformed")
	ErrSignature = errors.New("wechatpay: the signature does not fit the bytes")
	ErrSerial    = errors.New("wechatpay: signed under a serial that is not configured (PUB_KEY_ID_…: set wechatpay_public_key; else: set platform_certificate)")
	ErrAge       = errors.New("wechatpay: the signature is too old or of the future (is the clock right?)")
)

const (
	tolerance     = 300 // seconds, in both directions
	signatureType = "WECHATPAY2-SHA256-RSA2048"
	headerType    = "Wechatpay-Signature-Type"
)

var signedHeaders = [...]string{consts.WechatPayTimestamp, consts.WechatPayNonce, consts.WechatPaySignature, consts.WechatPaySerial}

// signedText is what the signature of an answer or a notice covers.
func signedText(timestamp, nonce string, body []byte) string {
	return timestamp + "\n" + nonce + "\n" + string(body) + "\n"
}

// check verifies with the known keys. A serial of a platform certificate that is
// not known lets the list be fetched, once.
func (a *Adapter) check(ctx context.Context, h http.Header, body []byte) error {
	err := a.verify(ctx, h, body, a.keys.get)
	if !errors.Is(err, ErrSerial) || !a.keys.certificates || !platformSerial(h.Get(consts.WechatPaySerial)) {
		return err
	}
	if a.refresh(ctx) != nil {
		return err
	}
	return a.verify(ctx, h, body, a.keys.get)
}

// platformSerial reports whether a serial can be one of a certificate.
func platformSerial(s string) bool {
	return s != "" && len(s) <= 40 && strings.Trim(s, "0123456789ABCDEF") == ""
}

// verify checks one signature over raw bytes. Everything is read strictly, so
// that one signature has one spelling: the SDK would trim, print numbers anew and
// take several spellings of base64.
func (a *Adapter) verify(ctx context.Context, h http.Header, body []byte, find func(string) auth.Verifier) error {
	for _, name := range signedHeaders {
		if v := h.Values(name); len(v) != 1 || !printable(v[0], 1024) {
			return ErrNotSigned
		}
	}
	if v := h.Values(headerType); len(v) > 1 || len(v) == 1 && v[0] != signatureType {
		return ErrNotSigned
	}
	stamp := h.Get(consts.WechatPayTimestamp)
	at, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || strconv.FormatInt(at, 10) != stamp {
		return ErrNotSigned
	}
	if d := at - a.now().Unix(); d > tolerance || d < -tolerance {
		return ErrAge
	}
	v := find(h.Get(consts.WechatPaySerial))
	if v == nil {
		return ErrSerial
	}
	sig := h.Get(consts.WechatPaySignature)
	if _, err := base64.StdEncoding.Strict().DecodeString(sig); err != nil {
		return ErrSignature // WECHATPAY/SIGNTEST/… ends here or below, like any other
	}
	if v.Verify(ctx, h.Get(consts.WechatPaySerial), signedText(stamp, h.Get(consts.WechatPayNonce), body), sig) != nil {
		return ErrSignature
	}
	return nil
}

// validator is what the SDK asks about every 2xx.
type validator struct{ a *Adapter }

// Validate looks at the bytes that were received, not at what is left of them.
func (v validator) Validate(ctx context.Context, _ *http.Response) error {
	ex, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return errors.New("answer without an exchange")
	}
	v.a.prove(ctx, ex)
	return ex.proof
}

// GetAcceptSerial names the key that answers are to be signed with: the public
// key where there is one.
func (v validator) GetAcceptSerial(context.Context) (string, error) {
	if v.a.cfg.PublicKeyID == "" {
		return "", errors.New("platform certificates only")
	}
	return v.a.cfg.PublicKeyID, nil
}

// prove checks the signature of an answer, once.
func (a *Adapter) prove(ctx context.Context, ex *exchange) {
	if ex.checked {
		return
	}
	ex.checked, ex.proof = true, a.check(ctx, ex.header, ex.body)
}

// claimsSignature reports whether an answer brings any part of a signature.
func (ex *exchange) claimsSignature() bool {
	for _, name := range signedHeaders {
		if len(ex.header.Values(name)) > 0 {
			return true
		}
	}
	return false
}

var errDecrypt = errors.New("wechatpay: the content cannot be decrypted (is apiv3_key this merchant's, and of API v3?)")

// decrypt opens a resource: AES-256-GCM under the APIv3 key.
func (a *Adapter) decrypt(resource members) (plain []byte, err error) {
	defer func() {
		if recover() != nil {
			plain, err = nil, errDecrypt
		}
	}()
	nonce, sealed := resource.text("nonce"), resource.text("ciphertext")
	data, ok := resource.optional("associated_data")
	algorithm, named := resource.optional("algorithm")
	if len(nonce) != 12 || sealed == "" || !ok || !named || algorithm != "AEAD_AES_256_GCM" {
		return nil, errDecrypt
	}
	text, err := utils.DecryptAES256GCM(a.cfg.APIv3Key, data, nonce, sealed)
	if err != nil {
		return nil, errDecrypt
	}
	return []byte(text), nil
}

// clientText is what the signature of the payer's own call covers: appid,
// seconds, nonce, and the prepay id as the method spells it.
func clientText(appID, seconds, nonce, prepay string) string {
	return appID + "\n" + seconds + "\n" + nonce + "\n" + prepay + "\n"
}

// clientParams are what the payer's page or app hands to WeChat.
func (a *Adapter) clientParams(method, prepayID string, at time.Time) (map[string]string, error) {
	nonce, err := utils.GenerateNonce()
	if err != nil {
		return nil, err
	}
	seconds := strconv.FormatInt(at.Unix(), 10)
	appID, signed := a.cfg.AppID, "prepay_id="+prepayID
	if method == MethodApp {
		appID, signed = a.cfg.MobileAppID, prepayID
	}
	sig, err := a.signer.Sign(context.Background(), clientText(appID, seconds, nonce, signed))
	if err != nil {
		return nil, fmt.Errorf("wechatpay: the payer's parameters cannot be signed: %w", err)
	}
	if method == MethodApp {
		return map[string]string{"appid": appID, "partnerid": a.cfg.MchID, "prepayid": prepayID, "package": "Sign=WXPay",
			"noncestr": nonce, "timestamp": seconds, "sign": sig.Signature}, nil
	}
	return map[string]string{"appId": appID, "timeStamp": seconds, "nonceStr": nonce, "package": signed,
		"signType": "RSA", "paySign": sig.Signature}, nil
}
