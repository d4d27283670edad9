//go:build amd64 && !appengine && !noasm && gc

package cpuinfo

import "sync"

// go:noescape
func x86extensions() (bmi1, bmi2 bool)

var extensions = sync.OnceValues(x86extensions)

// HasBMI2 checks whether an x86 CPU supports the BMI2 extension.
func HasBMI2() bool {
	_, bmi2 := extensions()
	return bmi2
}
