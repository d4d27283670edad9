// Package webtest looks at the pages of uwf web in Chromium, with the built commands:
// every page, an action to its end, a step while it runs, the keyboard alone, without
// scripts, on a narrow screen, and nothing that the browser complains of. `make test-web`
// runs it and leaves pictures in .tmp/web; `make test` does not, for want of a browser.
package webtest
