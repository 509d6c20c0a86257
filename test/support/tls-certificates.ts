import {
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  BasicConstraints,
  Extension,
  Extensions,
  GeneralName,
  id_ce_basicConstraints,
  id_ce_subjectAltName,
  Name,
  RelativeDistinguishedName,
  Certificate as SignedCertificate,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509'

/** Certificate and key in PEM. */
export interface Certificate {
  key: string
  cert: string
}

export interface Authority {
  /** Certificate that clients pass as `ca`. */
  ca: string
  issue(options: { host: string; notBefore?: Date; notAfter?: Date }): Certificate
}

const dayMs = 24 * 60 * 60 * 1000

/** Creates a certificate authority. */
export function createAuthority(name = 'Test authority'): Authority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const period = { notBefore: new Date(Date.now() - dayMs), notAfter: new Date(Date.now() + dayMs) }
  const own = {
    subject: name,
    issuer: name,
    signer: keys.privateKey,
    extensions: [basicConstraints(true)],
  }
  return {
    ca: pemOf(makeCertificate({ ...period, ...own, publicKey: keys.publicKey })),
    issue({ host, ...dates }) {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const names = extension(id_ce_subjectAltName, AsnConvert.serialize(subjectNames(host)))
      const signed = { subject: host, issuer: name, signer: keys.privateKey, extensions: [names] }
      return {
        key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
        cert: pemOf(makeCertificate({ ...period, ...dates, ...signed, publicKey })),
      }
    },
  }
}

export interface CertificateContents {
  /** Common names. */
  subject: string
  issuer: string
  notBefore: Date
  notAfter: Date
  publicKey: KeyObject
  /** P-256 key of the signer. */
  signer: KeyObject
  extensions: Extension[]
}

/** Returns a certificate in DER. Node can only read certificates. */
export function makeCertificate(contents: CertificateContents): Buffer {
  const signatureAlgorithm = new AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' })
  const spki = contents.publicKey.export({ type: 'spki', format: 'der' })
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: bytesOf(Buffer.concat([Buffer.of(1), randomBytes(8)])),
    signature: signatureAlgorithm,
    issuer: nameOf(contents.issuer),
    subject: nameOf(contents.subject),
    validity: new Validity(contents),
    subjectPublicKeyInfo: AsnConvert.parse(spki, SubjectPublicKeyInfo),
    extensions: new Extensions(contents.extensions),
  })
  const signed = Buffer.from(AsnConvert.serialize(tbsCertificate))
  const signatureValue = bytesOf(sign('sha256', signed, contents.signer))
  const whole = new SignedCertificate({ tbsCertificate, signatureAlgorithm, signatureValue })
  return Buffer.from(AsnConvert.serialize(whole))
}

/** `value` is DER. */
export const extension = (extnID: string, value: ArrayBuffer | Uint8Array): Extension =>
  new Extension({ extnID, critical: false, extnValue: new OctetString(value) })

/** Returns the extension that says whether the certificate is a CA. */
export const basicConstraints = (cA: boolean): Extension =>
  extension(id_ce_basicConstraints, AsnConvert.serialize(new BasicConstraints({ cA })))

const pemOf = (der: Buffer) => new X509Certificate(der).toString()
const bytesOf = (bytes: Uint8Array) => new Uint8Array(bytes).buffer

function nameOf(commonName: string): Name {
  const value = new AttributeValue({ utf8String: commonName })
  return new Name([
    new RelativeDistinguishedName([new AttributeTypeAndValue({ type: '2.5.4.3', value })]),
  ])
}

/** Returns a dNSName, or an iPAddress for an IPv4 address. */
function subjectNames(host: string): SubjectAlternativeName {
  const isAddress = /^[\d.]+$/.test(host)
  return new SubjectAlternativeName([
    new GeneralName(isAddress ? { iPAddress: host } : { dNSName: host }),
  ])
}
