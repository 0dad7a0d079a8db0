package sim

import (
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"

	"github.com/payonce/payonce/internal/sim/alipaysim"
)

// alipayKeys is what the simulated Alipay signs and verifies with. The keys
// are made when the first call comes.
func (k *keyring) alipayKeys() alipaysim.Keys {
	return alipaysim.Keys{
		Account: sync.OnceValues(func() (alipaysim.Account, error) {
			keys, err := k.get(keyAlipayApp, keyAlipayPlatform)
			if err != nil {
				return alipaysim.Account{}, err
			}
			return alipaysim.Account{AppID: k.alipayApp(), SellerID: k.alipaySeller(), App: &keys[0].PublicKey, Platform: keys[1]}, nil
		}),
		Serials: sync.OnceValues(func() (alipaysim.Serials, error) {
			c, err := k.alipayCertificates()
			if err != nil {
				return alipaysim.Serials{}, err
			}
			return alipaysim.Serials{App: alipaysim.SerialOf(c.app), Root: alipaysim.SerialOf(c.root), Alipay: alipaysim.SerialOf(c.alipay)}, nil
		}),
	}
}

func (k *keyring) alipayApp() string    { return "20210" + k.w.Seed.Digits("alipay app id", 11) }
func (k *keyring) alipaySeller() string { return "2088" + k.w.Seed.Digits("alipay seller id", 12) }

// alipay are the credentials of public-key mode, and on demand the three
// certificates of certificate mode, which are for the same keys.
func (k *keyring) alipay(certificates bool) (map[string]string, error) {
	keys, err := k.get(keyAlipayApp, keyAlipayPlatform)
	if err != nil {
		return nil, err
	}
	private, err1 := privatePEM(keys[0])
	public, err2 := publicPEM(keys[1])
	out := map[string]string{
		"app_id":            k.alipayApp(),
		"seller_id":         k.alipaySeller(),
		"app_private_key":   private,
		"alipay_public_key": public,
	}
	if err := errors.Join(err1, err2); err != nil || !certificates {
		return out, err
	}
	c, err := k.alipayCertificates()
	if err != nil {
		return nil, err
	}
	out["app_certificate"] = certificatePEM(c.app.Raw)
	out["alipay_certificate"] = certificatePEM(c.alipay.Raw)
	out["alipay_root_certificate"] = certificatePEM(c.root.Raw)
	return out, nil
}

type alipayCertificates struct {
	app, alipay, root *x509.Certificate
}

func (k *keyring) alipayCertificates() (alipayCertificates, error) {
	var c alipayCertificates
	keys, err := k.get(keyAlipayApp, keyAlipayPlatform, keyAlipayRoot)
	if err != nil {
		return c, err
	}
	app, platform, root := keys[0], keys[1], keys[2]
	if c.root, err = k.issued(nil, root, root, "Ant Financial Certification Authority R1 (simulated)", keyAlipayRoot); err != nil {
		return c, err
	}
	if c.app, err = k.issued(c.root, root, app, k.alipayApp(), keyAlipayApp); err != nil {
		return c, err
	}
	c.alipay, err = k.issued(c.root, root, platform, "Alipay (simulated)", keyAlipayPlatform)
	return c, err
}

func (k *keyring) issued(issuer *x509.Certificate, signer, key *rsa.PrivateKey, name, label string) (*x509.Certificate, error) {
	der, err := issue(issuer, signer, key, name, k.serial(label))
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	return c, nil
}
