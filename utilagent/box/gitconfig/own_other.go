//go:build !unix

package gitconfig

import "os"

func own(string, os.FileInfo) {}
