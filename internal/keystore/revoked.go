package keystore

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Revoked are certificates that their issuers took back before their time.
type Revoked struct {
	lists []revocationList
}

type revocationList struct {
	list    *x509.RevocationList
	serials map[string]bool
}

// ErrRevoked says that a certificate was revoked.
var ErrRevoked = errors.New("the certificate is revoked")

// ParseRevoked reads lists of revoked certificates (CRLs), in PEM or one in DER.
func ParseRevoked(content []byte) (*Revoked, error) {
	r := &Revoked{}
	if isDER(content) {
		return r, r.add(content)
	}
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		if err := r.add(block.Bytes); err != nil {
			return nil, err
		}
	}
	if len(r.lists) == 0 {
		return nil, errors.New("there is no list of revoked certificates, a block X509 CRL in PEM")
	}
	return r, nil
}

func (r *Revoked) add(der []byte) error {
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		return err
	}
	serials := make(map[string]bool, len(list.RevokedCertificateEntries))
	for _, e := range list.RevokedCertificateEntries {
		serials[e.SerialNumber.String()] = true
	}
	list.RevokedCertificateEntries = nil // There may be many.
	r.lists = append(r.lists, revocationList{list, serials})
	return nil
}

// Overdue names the issuers of lists whose successors should be there by now.
func (r *Revoked) Overdue(now time.Time) (issuers []string) {
	for _, l := range r.lists {
		if !l.list.NextUpdate.IsZero() && now.After(l.list.NextUpdate) {
			issuers = append(issuers, l.list.Issuer.String())
		}
	}
	return issuers
}

// Check says whether a client may be known by one of the chains that TLS has verified, which
// end with one that is trusted: none of its certificates is on a list of its issuer. Where an
// issuer has no list here, nothing is known of its certificates, and they count.
func (r *Revoked) Check(chains [][]*x509.Certificate) error {
	var refused error
	for _, chain := range chains {
		err := r.checkChain(chain)
		if err == nil {
			return nil
		}
		refused = err
	}
	return refused
}

func (r *Revoked) checkChain(chain []*x509.Certificate) error {
	for i, cert := range chain {
		issuer := cert // The last is its own.
		if i+1 < len(chain) {
			issuer = chain[i+1]
		}
		for _, l := range r.lists {
			if !bytes.Equal(l.list.RawIssuer, cert.RawIssuer) || !l.serials[cert.SerialNumber.String()] {
				continue
			}
			// Two issuers may have one name. A signature that Go does not check any more counts.
			err := issuer.CheckSignature(l.list.SignatureAlgorithm, l.list.RawTBSRevocationList, l.list.Signature)
			if old := x509.InsecureAlgorithmError(0); err == nil || errors.As(err, &old) {
				return fmt.Errorf("%w: %s, number %s", ErrRevoked, cert.Subject, cert.SerialNumber)
			}
		}
	}
	return nil
}
