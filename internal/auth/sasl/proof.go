package sasl

import "encoding/binary"

// Proof marks what the password of a user is held against by PLAIN now. Another password,
// or a user who was made anew, has another proof; someone who is no user has none. The
// password cannot be found from it, nor can the credential without the directory's secret.
func (d *Directory) Proof(name string) (proof string, known bool) {
	c, known := d.either(name)
	if !known {
		return "", false
	}
	message := []byte("proof")
	for _, part := range [][]byte{{byte(c.Hash)}, c.Salt, binary.BigEndian.AppendUint64(nil, uint64(c.Iterations)), c.StoredKey, c.ServerKey, []byte(name)} {
		message = binary.BigEndian.AppendUint64(message, uint64(len(part)))
		message = append(message, part...)
	}
	return string(mac(d.hashes, SHA256, d.secret, message)), true
}
