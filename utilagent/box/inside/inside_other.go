//go:build !linux

// Package inside implements uwf-box, which supports only Linux.
package inside

import (
	"fmt"
	"io"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// Main reports that namespaces are not available.
func Main(_ []string, stderr io.Writer) int {
	fmt.Fprintln(stderr, "uwf-box needs the namespaces of Linux")
	return plan.Failed
}
