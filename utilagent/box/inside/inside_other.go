//go:build !linux

// Package inside is uwf-box, which is for Linux.
package inside

import (
	"fmt"
	"io"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// Main says that there are no namespaces here.
func Main(stderr io.Writer) int {
	fmt.Fprintln(stderr, "uwf-box needs the namespaces of Linux")
	return plan.Failed
}
