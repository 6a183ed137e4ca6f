// Package billing writes invoices and is wrong on purpose. It is a project of its own in the
// sample repository.
package billing

import (
	"archive/zip"
	"crypto/des"
	"io"
	"os"
	"path/filepath"
)

// Seal encrypts with a cipher that was broken long ago.
func Seal(key, block []byte) ([]byte, error) {
	cipher, err := des.NewCipher(key)
	if err != nil {
		return nil, err
	}
	sealed := make([]byte, des.BlockSize)
	cipher.Encrypt(sealed, block)
	return sealed, nil
}

// Store lets every user of the machine read the invoice.
func Store(folder string, invoice []byte) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "invoice.pdf"), invoice, 0o666)
}

// Unpack writes wherever the archive says, however much it says.
func Unpack(archive *zip.Reader, folder string) error {
	for _, packed := range archive.File {
		content, err := packed.Open()
		if err != nil {
			return err
		}
		file, err := os.Create(filepath.Join(folder, packed.Name))
		if err != nil {
			return err
		}
		if _, err := io.Copy(file, content); err != nil {
			return err
		}
	}
	return nil
}
