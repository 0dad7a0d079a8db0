//go:build unix

package config

import "io/fs"

// sharedMode reports whether others than the owner may read the file.
func sharedMode(m fs.FileMode) bool { return m.Perm()&0o077 != 0 }
