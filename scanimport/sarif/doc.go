// Package sarif reads SARIF 2.1.0 as scanners really write it and normalises it: results with their rule, level,
// severity, path and message resolved.
//
// A file that is not SARIF 2.1.0 is refused as a whole. In a valid file, unreadable parts are skipped and counted: one
// bad result does not affect the others. The package does no I/O beyond the reader that it is given.
package sarif
