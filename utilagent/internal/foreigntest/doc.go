// Package foreigntest starts a third-party fake endpoint for the tests of `make test-endpoint`. It needs npm and
// a network, so without the build tag endpoint it is empty.
package foreigntest
