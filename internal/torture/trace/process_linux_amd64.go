package trace

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// processOf is the process of a thread; 0 if it has ended.
func processOf(tid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if after, ok := bytes.CutPrefix(line, []byte("Tgid:")); ok {
			id, _ := strconv.Atoi(string(bytes.TrimSpace(after))) // the kernel writes a number
			return id
		}
	}
	return 0
}
