package keystore

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/des" // #nosec G502 -- only to read keys that others wrote.
	"crypto/pbkdf2"
	"crypto/sha1" // #nosec G505 -- only to read keys that others wrote.
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
)

// maxKeyIterations bounds the work for a key: OpenSSL takes 2,048 of them, Java 10,000.
const maxKeyIterations = 1_000_000

var (
	errKeyPassword = errors.New("the private key is encrypted and cannot be opened; is ssl.key.password right?")
	errKeyScheme   = errors.New("the private key is encrypted in a way that is not supported; openssl pkcs8 -topk8 -v2 aes256 encrypts it in one that is")
)

// decryptPEM opens the private keys of a PEM file that a password protects.
func decryptPEM(content []byte, password string) ([]byte, error) {
	if !bytes.Contains(content, []byte("ENCRYPTED")) {
		return content, nil
	}
	var out bytes.Buffer
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY":
			if password == "" {
				return nil, errors.New("the private key is encrypted, and ssl.key.password is not set")
			}
			der, err := decryptPKCS8(block.Bytes, password)
			if err != nil {
				return nil, err
			}
			block = &pem.Block{Type: "PRIVATE KEY", Bytes: der}
		case block.Headers["DEK-Info"] != "":
			return nil, errKeyScheme // What OpenSSL wrote until 2010.
		}
		if err := pem.Encode(&out, block); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// The structures and numbers of PKCS#8 and PKCS#5 (RFC 5958, RFC 8018).
type (
	encryptedKey struct {
		Algorithm pkix.AlgorithmIdentifier
		Data      []byte
	}
	pbes2 struct {
		Derivation, Encryption pkix.AlgorithmIdentifier
	}
	pbkdf2Params struct {
		Salt       []byte
		Iterations int
		Length     int                      `asn1:"optional"`
		PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
	}
)

var (
	oidPBES2  = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 13}
	oidPBKDF2 = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 5, 12}

	keyHashes = map[string]func() hash.Hash{
		"":                    sha1.New, // the default
		"1.2.840.113549.2.7":  sha1.New,
		"1.2.840.113549.2.8":  sha256.New224,
		"1.2.840.113549.2.9":  sha256.New,
		"1.2.840.113549.2.10": sha512.New384,
		"1.2.840.113549.2.11": sha512.New,
	}
	keyCiphers = map[string]struct {
		length int
		block  func([]byte) (cipher.Block, error)
	}{
		"1.2.840.113549.3.7":      {24, des.NewTripleDESCipher},
		"2.16.840.1.101.3.4.1.2":  {16, aes.NewCipher},
		"2.16.840.1.101.3.4.1.22": {24, aes.NewCipher},
		"2.16.840.1.101.3.4.1.42": {32, aes.NewCipher},
	}
)

// decryptPKCS8 opens a private key by PBES2, which is what OpenSSL, Java and others write.
func decryptPKCS8(der []byte, password string) ([]byte, error) {
	var key encryptedKey
	var scheme pbes2
	var derivation pbkdf2Params
	var iv []byte
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		return nil, fmt.Errorf("the private key: %w", err)
	}
	if !key.Algorithm.Algorithm.Equal(oidPBES2) {
		return nil, errKeyScheme
	}
	if _, err := asn1.Unmarshal(key.Algorithm.Parameters.FullBytes, &scheme); err != nil || !scheme.Derivation.Algorithm.Equal(oidPBKDF2) {
		return nil, errKeyScheme
	}
	if _, err := asn1.Unmarshal(scheme.Derivation.Parameters.FullBytes, &derivation); err != nil {
		return nil, errKeyScheme
	}
	if _, err := asn1.Unmarshal(scheme.Encryption.Parameters.FullBytes, &iv); err != nil {
		return nil, errKeyScheme
	}
	hashed, known := keyHashes[derivation.PRF.Algorithm.String()]
	with, has := keyCiphers[scheme.Encryption.Algorithm.String()]
	if !known || !has || derivation.Iterations < 1 || derivation.Iterations > maxKeyIterations {
		return nil, errKeyScheme
	}
	derived, err := pbkdf2.Key(hashed, password, derivation.Salt, derivation.Iterations, with.length)
	if err != nil {
		return nil, err
	}
	block, err := with.block(derived)
	if err != nil {
		return nil, err
	}
	return decryptCBC(block, iv, key.Data)
}

// decryptCBC takes the padding off too. What a wrong password makes has none, mostly; what it
// makes otherwise is no key.
func decryptCBC(block cipher.Block, iv, data []byte) ([]byte, error) {
	size := block.BlockSize()
	if len(iv) != size || len(data) == 0 || len(data)%size != 0 {
		return nil, errKeyScheme
	}
	out := make([]byte, len(data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(out, data)
	padding := int(out[len(out)-1])
	if padding == 0 || padding > size || !bytes.Equal(out[len(out)-padding:], bytes.Repeat([]byte{byte(padding)}, padding)) {
		return nil, errKeyPassword
	}
	out = out[:len(out)-padding]
	var whole asn1.RawValue
	if rest, err := asn1.Unmarshal(out, &whole); err != nil || len(rest) > 0 {
		return nil, errKeyPassword
	}
	return out, nil
}
