//go:build !unix

package journal

import "os"

// lockFolder only opens the file: there is no portable lock that ends with
// the process.
func lockFolder(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
