//go:build !unix

package config

import "io/fs"

// sharedMode cannot tell: permissions are not in the mode here.
func sharedMode(fs.FileMode) bool { return false }
