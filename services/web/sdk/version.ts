/** Of the SDK, as it names itself to the server. */
export const sdkVersion = '0.1.0'
