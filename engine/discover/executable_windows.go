package discover

import (
	"os"
	"strings"
)

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && strings.HasSuffix(strings.ToLower(path), ".exe")
}
